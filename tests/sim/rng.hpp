// The only source of randomness of a world, from one seed. It gives the same numbers on every machine. The
// distributions of the standard library do not guarantee that.
#pragma once

#include <redlock/entropy.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

namespace redlock::sim {

class Rng {
public:
    explicit Rng(std::uint64_t seed) : state_(seed) {}

    /// Implements splitmix64: one addition and a hash, so that seeds such as 1, 2 and 3 give unrelated
    /// sequences.
    std::uint64_t next() noexcept {
        auto z = (state_ += 0x9E3779B97F4A7C15U);
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31U);
    }

    std::size_t below(std::size_t end) noexcept { return end == 0 ? 0 : next() % end; }
    int between(int least, int most) noexcept {
        return least + static_cast<int>(below(static_cast<std::size_t>(most - least) + 1));
    }
    /// Returns a number in [0, 1).
    double fraction() noexcept { return static_cast<double>(next() >> 11U) * 0x1p-53; }
    bool chance(double probability) noexcept { return probability > 0 && fraction() < probability; }

    std::chrono::nanoseconds between(std::chrono::nanoseconds least, std::chrono::nanoseconds most) noexcept {
        return least + scaled(most - least, fraction());
    }
    /// Returns a duration that is mostly short, sometimes long, and at most three times the mean. The bound
    /// permits waits for the longest case.
    std::chrono::nanoseconds about(std::chrono::nanoseconds mean) noexcept {
        const auto u = fraction();
        return scaled(mean, 3 * u * u);
    }
    double between(double least, double most) noexcept { return least + (most - least) * fraction(); }

    template <class Range>
    auto pick(const Range& range) noexcept {
        return *(std::begin(range) + static_cast<std::ptrdiff_t>(below(std::size(range))));
    }

    /// Returns an Rng for a part of the world, so that its draws do not change those of other parts.
    Rng child() noexcept { return Rng{next()}; }

private:
    static std::chrono::nanoseconds scaled(std::chrono::nanoseconds span, double factor) noexcept {
        return std::chrono::nanoseconds{
            static_cast<std::chrono::nanoseconds::rep>(static_cast<double>(span.count()) * factor)};
    }

    std::uint64_t state_;
};

/// The entropy from which the library draws owners and pauses.
class SimEntropy final : public Entropy {
public:
    explicit SimEntropy(Rng rng) : rng_(rng) {}

    std::error_code fill(std::span<std::byte> out) noexcept override {
        for (auto& byte : out) byte = static_cast<std::byte>(rng_.next() & 0xFFU);
        return {};
    }

private:
    Rng rng_;
};

}  // namespace redlock::sim
