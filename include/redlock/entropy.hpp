// Randomness as an argument: owners and pauses are drawn from here and from nowhere else.
#pragma once

#include <redlock/export.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

namespace redlock {

class REDLOCK_EXPORT Entropy {
public:
    /// Fills `out` with unpredictable bytes, or says why it cannot; never with anything weaker (rule A6).
    virtual std::error_code fill(std::span<std::byte> out) noexcept = 0;

protected:
    ~Entropy() = default;
};

/// The operating system's generator. Parent and child draw different bytes after fork().
REDLOCK_EXPORT Entropy& os_entropy() noexcept;

/// The random value that signs one attempt on all nodes (S6, S7): 20 bytes, written as 40 hex digits so
/// that any byte is safe on the wire. Empty while there is nothing to sign.
class REDLOCK_EXPORT Owner {
public:
    Owner() = default;

    /// Draws a fresh one; leaves it empty and says why when there is no entropy.
    std::error_code draw(Entropy& entropy) noexcept;

    /// The one that was written as `hex`; none if that is not 40 hex digits in lower case.
    static std::optional<Owner> parse(std::string_view hex) noexcept;

    std::string_view view() const noexcept { return {hex_.data(), length_}; }
    bool empty() const noexcept { return length_ == 0; }

private:
    static constexpr std::string_view digits = "0123456789abcdef";

    std::array<char, 40> hex_{};
    std::size_t length_ = 0;
};

}  // namespace redlock
