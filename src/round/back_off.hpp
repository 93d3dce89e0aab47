// The pause after failures in a row: it doubles with each failure, up to a limit, and has a random part.
//
// Each user counts its own failures: those of a node (node_health.hpp), the refusals of waiters that were
// woken (waiting.hpp), the exceptions of a leader's work (leader.hpp). The pause between two attempts of
// acquire() does not grow. It is a plain random_pause().
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/retry.hpp>

#include <algorithm>

namespace redlock::detail {

struct BackOff {
    Clock::duration shortest;
    Clock::duration longest;  ///< At most Clock::duration::max() / 2, because the pause is doubled below it.

    /// Returns a random pause, uniform in [p/2, p]. p is `shortest`, doubled `doublings` times, but at most
    /// `longest`. A negative number of doublings counts as none.
    Clock::duration pause(int doublings, Entropy& entropy) const noexcept {
        auto limit = shortest;
        while (doublings-- > 0 && limit < longest) limit *= 2;
        return random_pause(std::min(limit, longest), entropy);
    }
};

}  // namespace redlock::detail
