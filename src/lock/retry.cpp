// The random pause between attempts: from half of the longest pause to the longest. If there are no random
// numbers, it is the longest.
#include <redlock/retry.hpp>

#include "random_number.hpp"

#include <cstdint>

namespace redlock {

Clock::duration random_pause(Clock::duration longest, Entropy& entropy) noexcept {
    std::uint64_t number = 0;
    if (draw(number, entropy)) return longest;
    const auto fraction = static_cast<double>(number) / 0x1p64;
    const auto half = static_cast<double>(longest.count()) / 2;
    return Clock::duration{static_cast<Clock::rep>(half + half * fraction)};
}

}  // namespace redlock
