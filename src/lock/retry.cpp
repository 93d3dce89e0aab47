// The random pause between attempts: from half of the longest pause to the longest. If there are no random
// numbers, it is the longest.
#include <redlock/retry.hpp>

#include "little_endian.hpp"

#include <array>
#include <cstddef>

namespace redlock {

Clock::duration random_pause(Clock::duration longest, Entropy& entropy) noexcept {
    std::array<std::byte, sizeof(std::uint64_t)> bytes{};
    if (entropy.fill(bytes)) return longest;
    const auto fraction = static_cast<double>(little_endian(bytes)) / 0x1p64;
    const auto half = static_cast<double>(longest.count()) / 2;
    return Clock::duration{static_cast<Clock::rep>(half + half * fraction)};
}

}  // namespace redlock
