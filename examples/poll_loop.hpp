// A small event loop with poll(). It has all that the library needs of an event loop, so use it as a pattern
// for the loop of your program. If that loop already has timers and watches descriptors, the derived class
// takes about 40 lines. event_loop.hpp says what makes a loop with many descriptors faster than this one.
#pragma once

#include <redlock/event_loop.hpp>

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <vector>

class PollLoop final : public redlock::EventLoop {
public:
    void watch(int fd, bool reads, bool writes) override {
        forget(fd);
        const auto events = static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
        if (events != 0) watched_.push_back({.fd = fd, .events = events, .revents = 0});
    }

    void forget(int fd) noexcept override {
        std::erase_if(watched_, [fd](const pollfd& it) { return it.fd == fd; });
    }

    void wake_after(std::chrono::nanoseconds delay) noexcept override {
        const bool never = delay == std::chrono::nanoseconds::max();
        wake_at_ = never ? Steady::time_point::max() : Steady::now() + delay;
    }

    /// Waits for events until `latest`, and handles them. Returns false if there is nothing to wait for.
    bool run_once(std::chrono::steady_clock::time_point latest = Steady::time_point::max()) {
        const auto until = std::min(latest, wake_at_);
        const bool is_limited = until != Steady::time_point::max();
        if (watched_.empty() && !is_limited) return false;
        auto polled = watched_;
        // If a signal interrupts poll(), no entry is ready, and the next call polls again.
        ::poll(polled.data(), polled.size(), is_limited ? milliseconds_until(until) : -1);
        for (const auto& it : polled) {
            if (it.revents == 0 || !is_watched(it.fd)) continue;
            forget(it.fd);  // watch() asks for one call of ready()
            ready(it.fd);
        }
        if (wake_at_ <= Steady::now()) {
            wake_at_ = Steady::time_point::max();
            wake();
        }
        return true;
    }

    /// Runs until no descriptor is watched and no timer is set.
    void run() {
        while (run_once()) {
        }
    }

private:
    using Steady = std::chrono::steady_clock;

    bool is_watched(int fd) const {
        for (const auto& it : watched_)
            if (it.fd == fd) return true;
        return false;
    }

    static int milliseconds_until(Steady::time_point instant) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(instant - Steady::now());
        return left.count() < 0 ? 0 : static_cast<int>(left.count());
    }

    std::vector<pollfd> watched_{};
    Steady::time_point wake_at_ = Steady::time_point::max();
};
