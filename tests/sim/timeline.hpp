// True time, which no clock in the world shows exactly, and the events to come. Time passes at no cost,
// because the world goes from one event to the next.
#pragma once

#include "rng.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace redlock::sim {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// An instant of true time, counted from the beginning of the world.
using Instant = nanoseconds;

class Timeline {
public:
    explicit Timeline(Rng rng) : rng_(rng) {}

    Instant now() const noexcept { return now_; }
    std::uint64_t events() const noexcept { return events_; }

    /// Schedules an event. Events at the same instant happen in random order.
    void at(Instant when, std::function<void()> action) {
        heap_.push_back({std::max(when, now_), rng_.next(), std::move(action)});
        std::ranges::push_heap(heap_, later);
    }
    void after(nanoseconds span, std::function<void()> action) { at(now_ + span, std::move(action)); }

    /// Executes the next event. Returns false if there is none up to `until`.
    bool step(Instant until = Instant::max()) {
        if (heap_.empty() || heap_.front().when > until) return false;
        std::ranges::pop_heap(heap_, later);
        const auto event = std::move(heap_.back());
        heap_.pop_back();
        now_ = event.when;
        ++events_;
        event.action();
        return true;
    }

    /// Advances the time without executing an event.
    void pass_to(Instant when) noexcept { now_ = std::max(now_, when); }

private:
    struct Event {
        Instant when;
        std::uint64_t tie;
        std::function<void()> action;
    };
    static bool later(const Event& a, const Event& b) noexcept {
        return a.when != b.when ? a.when > b.when : a.tie > b.tie;
    }

    Rng rng_;
    std::vector<Event> heap_{};
    Instant now_{};
    std::uint64_t events_ = 0;
};

}  // namespace redlock::sim
