// Randomness as an argument: owners and pauses are drawn from here and from nowhere else.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

namespace redlock {

class Entropy {
public:
    /// Fills `out` with unpredictable bytes, or says why it cannot; never with anything weaker (rule A6).
    virtual std::error_code fill(std::span<std::byte> out) noexcept = 0;

protected:
    ~Entropy() = default;
};

/// The operating system's generator. Parent and child draw different bytes after fork().
Entropy& os_entropy() noexcept;

/// The random value that signs one attempt on all nodes (S6, S7): 20 bytes, written as 40 hex digits so
/// that any byte is safe on the wire. Empty while there is nothing to sign.
class Owner {
public:
    Owner() = default;

    /// Draws a fresh one; leaves it empty and says why when there is no entropy.
    std::error_code draw(Entropy& entropy) noexcept {
        *this = {};
        std::array<std::byte, 20> bytes;
        if (auto error = entropy.fill(bytes)) return error;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const auto byte = std::to_integer<unsigned>(bytes[i]);
            hex_[2 * i] = digits[byte >> 4U];
            hex_[2 * i + 1] = digits[byte & 0xFU];
        }
        length_ = hex_.size();
        return {};
    }

    /// The one that was written as `hex`; none if that is not 40 hex digits in lower case.
    static std::optional<Owner> parse(std::string_view hex) noexcept {
        Owner owner;
        const bool proper = hex.size() == owner.hex_.size() && hex.find_first_not_of(digits) == hex.npos;
        if (!proper) return std::nullopt;
        std::ranges::copy(hex, owner.hex_.begin());
        owner.length_ = hex.size();
        return owner;
    }

    std::string_view view() const noexcept { return {hex_.data(), length_}; }
    bool empty() const noexcept { return length_ == 0; }

private:
    static constexpr std::string_view digits = "0123456789abcdef";

    std::array<char, 40> hex_{};
    std::size_t length_ = 0;
};

}  // namespace redlock
