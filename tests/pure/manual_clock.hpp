// Time that passes only when a test advances it or a wait passes it, and the events that happen meanwhile.
#pragma once

#include "event_log.hpp"

#include <redlock/clock.hpp>

#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace redlock::test {

class ManualClock final : public Clock {
public:
    explicit ManualClock(EventLog& log) : log_(&log) {}

    time_point now() noexcept override { return now_; }

    /// The pause of an acquire(). Lasts until `until`, or until an event requests stop.
    void sleep_until(time_point until, std::stop_token stop) override {
        log_->note("pause");
        const auto began = now_;
        while (!stop.stop_requested() && !events_.empty() && events_.begin()->first <= until)
            let_next_event_happen();
        if (!stop.stop_requested()) now_ = std::max(now_, until);
        pauses_.push_back(now_ - began);
    }

    void advance(duration span) { advance_to(now_ + span); }

    void advance_to(time_point instant) {
        while (!events_.empty() && events_.begin()->first <= instant) let_next_event_happen();
        now_ = std::max(now_, instant);
    }

    /// Schedules `event` after `span`. It happens during whatever wait passes that instant.
    void after(duration span, std::function<void()> event) { events_.emplace(now_ + span, std::move(event)); }

    /// Returns when the next event happens, or Clock::never().
    time_point next_event() const { return events_.empty() ? never() : events_.begin()->first; }

    /// Returns how long each pause lasted.
    const std::vector<duration>& pauses() const { return pauses_; }

private:
    void let_next_event_happen() {
        auto event = events_.extract(events_.begin());
        now_ = std::max(now_, event.key());
        event.mapped()();
    }

    EventLog* log_;
    time_point now_{std::chrono::hours{100}};  // a machine that has been up for a while
    std::multimap<time_point, std::function<void()>> events_;
    std::vector<duration> pauses_;
};

}  // namespace redlock::test
