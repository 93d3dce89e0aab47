// A random number.
#pragma once

#include <redlock/entropy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace redlock {

/// Draws a number of 64 bits, or returns the error of the entropy. The same bytes make the same number on
/// every processor, so that a test with a seed has the same course everywhere.
inline std::error_code draw(std::uint64_t& number, Entropy& entropy) noexcept {
    std::array<std::byte, sizeof number> bytes{};
    const auto error = entropy.fill(bytes);
    number = 0;
    for (unsigned i = 0; i < bytes.size(); ++i) number |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
    return error;
}

}  // namespace redlock
