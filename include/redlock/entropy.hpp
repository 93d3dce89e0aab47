// Randomness is an argument: owners and pauses are drawn from an Entropy and from nothing else.
#pragma once

#include <redlock/export.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

namespace redlock {

/// A source of random bytes. All threads may share it.
class REDLOCK_EXPORT Entropy {
public:
    /// Fills `out` with unpredictable bytes. If that is not possible, returns the error, and never uses a
    /// weaker source instead.
    virtual std::error_code fill(std::span<std::byte> out) noexcept = 0;

protected:
    ~Entropy() = default;
};

/// Returns the random generator of the operating system. Parent and child get different bytes after fork().
REDLOCK_EXPORT Entropy& os_entropy() noexcept;

/// The random value that identifies one attempt to acquire a lock. It is the value of the keys on all nodes:
/// 20 bytes, written as 40 hex digits. Empty until it is drawn.
class REDLOCK_EXPORT Owner {
public:
    Owner() = default;

    /// Draws a new value. If the entropy fails, leaves this owner empty and returns the error.
    std::error_code draw(Entropy& entropy) noexcept;

    /// Returns the owner that was written as `hex`; nothing if that is not 40 lower-case hex digits.
    static std::optional<Owner> parse(std::string_view hex) noexcept;

    /// Returns the 40 hex digits, or an empty text.
    std::string_view view() const noexcept { return {hex_.data(), length_}; }
    bool empty() const noexcept { return length_ == 0; }

private:
    static constexpr std::string_view digits = "0123456789abcdef";

    std::array<char, 40> hex_{};
    std::size_t length_ = 0;
};

}  // namespace redlock
