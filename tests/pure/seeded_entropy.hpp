// Randomness that is the same in every run, and that can run out.
#pragma once

#include <redlock/entropy.hpp>

#include <limits>
#include <random>

namespace redlock::test {

class SeededEntropy final : public Entropy {
public:
    explicit SeededEntropy(std::uint64_t seed) : engine_(seed) {}

    std::error_code fill(std::span<std::byte> out) noexcept override {
        if (draws_left_ == 0) return std::make_error_code(std::errc::io_error);
        --draws_left_;
        for (auto& byte : out) byte = static_cast<std::byte>(engine_() & 0xFFU);
        return {};
    }

    /// From now on, this number of draws succeeds, and all later ones fail.
    void dry_up_after(std::size_t draws) { draws_left_ = draws; }

private:
    std::mt19937_64 engine_;
    std::size_t draws_left_ = std::numeric_limits<std::size_t>::max();
};

/// Entropy with equal bytes, for the ends of a range.
class ConstantEntropy final : public Entropy {
public:
    explicit ConstantEntropy(unsigned char byte) : byte_(std::byte{byte}) {}

    std::error_code fill(std::span<std::byte> out) noexcept override {
        for (auto& byte : out) byte = byte_;
        return {};
    }

private:
    std::byte byte_;
};

}  // namespace redlock::test
