// The pause between two attempts.
//
// Two clients that have collided must not collide again and again. The pause is therefore random, uniform in
// [delay/2, delay]. Clients that start at the same time get different pauses, because the pauses come from
// the same entropy as the owners. The delay should be clearly longer than the time that a majority takes to
// answer.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/export.hpp>

namespace redlock {

/// The type of LockOptions::retry.
struct Retry {
    int attempts = 3;                      ///< How many attempts acquire() makes, at least 1 (no retry).
    std::chrono::milliseconds delay{200};  ///< The longest pause, from 1 ms to 24 h.
};

/// Returns a random time, uniform in [longest/2, longest]. Returns `longest` if the entropy fails.
REDLOCK_EXPORT Clock::duration random_pause(Clock::duration longest, Entropy& entropy) noexcept;

}  // namespace redlock
