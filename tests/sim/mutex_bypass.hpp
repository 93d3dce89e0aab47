// The mutexes of the real code, when fibers are suspended while they hold one. Another fiber of the process
// that needs it waits, in virtual time, as a thread would: see mutexes.cpp, which the linker puts in place of
// pthread_mutex_lock(). The checker, which inspects locks from outside, does not wait.
#pragma once

namespace redlock::sim {

/// While there is one, no fiber waits for a mutex: the state behind it is read as it is.
class MutexBypass {
public:
    MutexBypass() noexcept { ++depth_; }
    ~MutexBypass() { --depth_; }
    MutexBypass(const MutexBypass&) = delete;
    MutexBypass& operator=(const MutexBypass&) = delete;

    static bool active() noexcept { return depth_ > 0; }

    /// Whether a fiber would have had to wait for what was read since the last call.
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
