// Random bytes as a number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace redlock {

/// Returns the same number on every processor, so that a test with a seed has the same course everywhere.
constexpr std::uint64_t little_endian(const std::array<std::byte, 8>& bytes) noexcept {
    std::uint64_t number = 0;
    unsigned position = 0;
    for (const auto byte : bytes) {
        number |= std::to_integer<std::uint64_t>(byte) << position;
        position += 8;
    }
    return number;
}

}  // namespace redlock
