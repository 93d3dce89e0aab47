// How long to pause between two attempts (S20, S21).
//
// Two clients that started together and collided must not collide again for ever: the pause is random,
// uniform in [delay/2, delay], and differs between processes because it comes from the same entropy as
// the owners. It should be clearly longer than the time a majority takes to answer.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/export.hpp>

#include <cstdint>

namespace redlock {

/// LockOptions::retry.
struct Retry {
    int attempts = 3;                      ///< attempts of acquire() in all, at least 1; 1 = no retry
    std::chrono::milliseconds delay{200};  ///< longest pause between two attempts; at least 1 ms
};

/// A pause uniform in [longest/2, longest]; `longest` itself should the entropy fail.
REDLOCK_EXPORT Clock::duration random_pause(Clock::duration longest, Entropy& entropy) noexcept;

}  // namespace redlock
