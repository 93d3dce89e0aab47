// The mutexes of the real code, when fibers stand still while they hold one. Another fiber of the process
// that wants it waits, in virtual time, as a thread would: see mutexes.cpp, which the linker puts in place of
// std::mutex::lock(). Who looks from outside, as the referee does, passes through.
#pragma once

namespace redlock::sim {

/// While there is one, nobody waits for a mutex: what is there is looked at as it is.
class Looking {
public:
    Looking() noexcept { ++depth_; }
    ~Looking() { --depth_; }
    Looking(const Looking&) = delete;
    Looking& operator=(const Looking&) = delete;

    static bool now() noexcept { return depth_ > 0; }

    /// Whether any fiber would have had to wait for what has been looked at since it was last asked.
    static bool was_behind_a_mutex() noexcept {
        const bool result = behind_;
        behind_ = false;
        return result;
    }
    static void behind_a_mutex() noexcept { behind_ = true; }

private:
    static inline thread_local int depth_ = 0;
    static inline thread_local bool behind_ = false;
};

}  // namespace redlock::sim
