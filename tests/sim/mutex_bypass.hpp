// How the simulation treats mutexes of the real code. A fiber may be suspended while it holds one. Then
// another fiber of the process that needs the mutex waits in virtual time, as a thread would: see
// mutexes.cpp, which replaces pthread_mutex_lock() at link time. The checker inspects locks from outside, and
// does not wait.
#pragma once

#include <redlock/detail/not_copied.hpp>

namespace redlock::sim {

/// While an object of this class exists, no fiber waits for a mutex. Guarded state is read as it is.
class MutexBypass : detail::NotCopied {
public:
    MutexBypass() noexcept { ++depth_; }
    ~MutexBypass() { --depth_; }

    static bool active() noexcept { return depth_ > 0; }

    /// Returns true if any read since the last call would have had to wait for a mutex.
    static bool found_mutex_held() noexcept {
        const bool result = found_held_;
        found_held_ = false;
        return result;
    }
    static void note_mutex_held() noexcept { found_held_ = true; }

private:
    static inline thread_local int depth_ = 0;
    static inline thread_local bool found_held_ = false;
};

}  // namespace redlock::sim
