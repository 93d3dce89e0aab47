// Time that passes only when a test advances it or a wait passes it, and the events that happen meanwhile.
#pragma once

#include "event_log.hpp"

#include <redlock/clock.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace redlock::test {

class ManualClock : public Clock {
public:
    explicit ManualClock(duration since_boot = std::chrono::hours{1}) : now_(since_boot) {}
    virtual ~ManualClock() = default;

    time_point now() noexcept override { return now_; }

    /// Lasts until `until`, or until an event requests stop.
    void sleep_until(time_point until, std::stop_token stop) override {
        while (!stop.stop_requested() && let_next_event_happen(until)) {
        }
        if (!stop.stop_requested()) advance_to(until);
    }

    void advance(duration span) { advance_to(now_ + span); }

    void advance_to(time_point instant) {
        while (let_next_event_happen(instant)) {
        }
        now_ = std::max(now_, instant);
    }

    /// Schedules `event` after `span`. It happens during whatever wait passes that instant, and may wait
    /// itself.
    void after(duration span, std::function<void()> event) { events_.emplace(now_ + span, std::move(event)); }

    /// Returns when the next event happens, or Clock::never().
    time_point next_event() const { return events_.empty() ? never() : events_.begin()->first; }

    /// Returns false if there is no event until then.
    bool let_next_event_happen(time_point until) {
        if (events_.empty() || next_event() > until) return false;
        const auto event = events_.extract(events_.begin());
        now_ = std::max(now_, event.key());
        event.mapped()();
        return true;
    }

private:
    time_point now_;
    std::multimap<time_point, std::function<void()>> events_{};
};

/// Notes each pause of an acquire().
class LoggedClock final : public ManualClock {
public:
    explicit LoggedClock(EventLog& log) : ManualClock(std::chrono::hours{100}), log_(&log) {}

    void sleep_until(time_point until, std::stop_token stop) override {
        log_->note("pause");
        const auto began = now();
        ManualClock::sleep_until(until, std::move(stop));
        pauses_.push_back(now() - began);
    }

    /// Returns how long each pause lasted.
    const std::vector<duration>& pauses() const { return pauses_; }

private:
    EventLog* log_;
    std::vector<duration> pauses_{};
};

}  // namespace redlock::test
