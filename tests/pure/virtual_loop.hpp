// An event loop in virtual time.
#pragma once

#include "manual_clock.hpp"

#include <redlock/clock.hpp>
#include <redlock/event_loop.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace redlock::test {

/// A loop whose timer is a ManualClock. It has no descriptors.
class VirtualLoop final : public EventLoop {
public:
    explicit VirtualLoop(ManualClock& clock) : clock_(clock) {}

    void watch(int, bool, bool) override {}
    void forget(int) noexcept override {}
    void wake_after(std::chrono::nanoseconds delay) noexcept override {
        wake_at_ = delay == delay.max() ? Clock::never() : clock_.now() + delay;
        if (delay == delay.max()) return;
        ++naps;
        longest_nap = std::max<Clock::duration>(longest_nap, delay);
    }

    /// Returns false if there is nothing to wait for until this instant.
    bool run_once(Clock::time_point until = Clock::never()) {
        if (wake_at_ == Clock::never() || wake_at_ > until) return false;
        if (clock_.next_event() < wake_at_) {  // the event may end a wait of the loop
            clock_.advance_to(clock_.next_event());
            return true;
        }
        clock_.advance_to(std::exchange(wake_at_, Clock::never()));
        wake();
        return true;
    }
    Clock::time_point now() const { return clock_.now(); }

    std::size_t naps = 0;
    Clock::duration longest_nap{};

private:
    ManualClock& clock_;
    Clock::time_point wake_at_ = Clock::never();
};

}  // namespace redlock::test
