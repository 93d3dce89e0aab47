// Time that passes only while somebody waits for it, for a program that waits in poll(), recv() and Clock.
// The linker puts the functions of simulated_time.cpp in the place of poll(), recv(), clock_gettime() and
// getentropy() (see CMakeLists.txt): a silent server costs no real time, a busy machine makes nobody late,
// and the same input does the same each time.
//
// The others act while the program waits: what they do now is do_now() of the Surroundings.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>

#include <cstdint>
#include <random>
#include <system_error>

namespace redlock::fuzz {

class Surroundings {
public:
    /// What is due by now.
    virtual void do_now(Clock::time_point now) = 0;
    /// When there is more to do, by itself; never if only what the program does can be the cause.
    virtual Clock::time_point next() const = 0;

protected:
    ~Surroundings() = default;
};

class SimulatedTime final : public Clock, public Entropy {
public:
    /// From now on, until the object ends, time is simulated; one at a time.
    explicit SimulatedTime(Surroundings& surroundings);
    ~SimulatedTime();
    SimulatedTime(const SimulatedTime&) = delete;
    SimulatedTime& operator=(const SimulatedTime&) = delete;

    static SimulatedTime* current() noexcept;

    time_point now() noexcept override { return now_; }
    void sleep_until(time_point until, std::stop_token stop) override;
    std::error_code fill(std::span<std::byte> out) noexcept override;

    /// Lets time pass until `until`, or until `ready()` says so after something has happened.
    template <class Ready>
    void wait(time_point until, Ready ready) {
        for (surroundings_.do_now(now_); !ready() && now_ < until; surroundings_.do_now(now_))
            now_ = std::max(now_, std::min(until, surroundings_.next()));
    }

    /// Reading the clock takes time, too.
    time_point read() noexcept { return now_ += std::chrono::nanoseconds{100}; }

private:
    Surroundings& surroundings_;
    time_point now_{std::chrono::hours{100}};  // a machine that has been up for a while
    std::minstd_rand random_{1};
};

}  // namespace redlock::fuzz
