// The waiters of one event loop that wait in queues (LockOptions::fair), by resource. The oldest waiters of
// each resource have a *turn*: they are in the queue of their home node. The others wait here.
// docs/waiting.md has the reasons (Many waiters in an event loop).
#pragma once

#include <redlock/algorithm/waiting.hpp>
#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>

#include "scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace redlock::loop {

class LocalQueues {
public:
    /// This number of waiters of each resource has a turn. If one of them gets the resource, the next ones
    /// are in the queue of the node already.
    static constexpr std::size_t with_turn = 4;
    /// The limit of turns, if older waiters join later.
    static constexpr std::size_t most_with_turn = 8;
    /// The shortest time between two attempts of one queue that waiters make without a turn.
    static constexpr Clock::duration time_between_attempts = std::chrono::milliseconds{25};
    /// How long no such attempt is made after a waiter that had a turn has left the queue.
    static constexpr Clock::duration quiet_time = algorithm::poll_interval;

    class Place;

private:
    struct Queue {
        std::deque<Place*> places{};  // the oldest waiter is the first
        std::size_t turns = 0;
        Clock::time_point next_attempt{};  // without a turn
        Clock::time_point quiet_until{};
        std::optional<QueuePlace> reported{};  // by the home node
        std::size_t reported_to = 0;  // how many waiters were in front of the waiter that got the report
    };
    using Queues = std::map<std::string, Queue, std::less<>>;

    Queues queues_{};
};

/// The place of one waiter. The destructor leaves the queue.
class LocalQueues::Place : detail::NotCopied {
public:
    /// `queues` must outlive the object.
    explicit Place(LocalQueues& queues) : queues_(queues) {}
    ~Place() { leave(); }

    /// Joins the queue, unless the waiter is in it. Returns true if it has a turn, otherwise the task is
    /// woken when its turn has come. `since` is the instant at which it began to wait. May throw
    /// std::bad_alloc.
    bool take(Task& task, std::string_view resource, Clock::time_point since) {
        task_ = &task;
        if (!joined_) join(resource, since);
        return has_turn_;
    }

    /// Returns true if the waiter may make an attempt without a turn. Otherwise sets `due` to the instant at
    /// which it must ask again. Requires that the waiter is in the queue, as the functions below.
    bool may_attempt(Clock::time_point now, Clock::time_point& due) noexcept {
        if (now < due) return false;
        auto& queue = at_->second;
        const bool chosen = is_scheduled_ && now >= queue.quiet_until;
        is_scheduled_ = !chosen;
        if (chosen) return true;
        due = std::max({now, queue.next_attempt, queue.quiet_until});
        queue.next_attempt = due + time_between_attempts;
        return false;
    }

    /// Returns the resource.
    const std::string& resource() const noexcept { return at_->first; }

    /// Records a report that the home node has made to this waiter.
    void record(const QueuePlace& place) noexcept {
        at_->second.reported = place;
        at_->second.reported_to = in_front();
    }

    /// Returns the place of this waiter, which is computed from the last report to any waiter of this queue.
    std::optional<QueuePlace> estimate() const noexcept {
        auto place = at_->second.reported;
        const auto others = in_front();
        if (place && others > at_->second.reported_to) place->in_front += others - at_->second.reported_to;
        return place;
    }

private:
    static bool is_older(const Place* left, const Place* right) noexcept {
        return left->since_ < right->since_;
    }

    std::size_t in_front() const noexcept {
        const auto& places = at_->second.places;
        const auto from = std::ranges::lower_bound(places, this, is_older);
        return static_cast<std::size_t>(std::find(from, places.end(), this) - places.begin());
    }

    void join(std::string_view resource, Clock::time_point since) {
        since_ = since;
        at_ = queues_.queues_.try_emplace(std::string{resource}).first;
        auto& places = at_->second.places;
        try {
            places.insert(std::ranges::upper_bound(places, this, is_older), this);
        } catch (...) {
            if (places.empty()) queues_.queues_.erase(at_);
            throw;
        }
        joined_ = true;
        give_turns(at_->second);
    }

    void leave() noexcept {
        if (!std::exchange(joined_, false)) return;
        auto& queue = at_->second;
        queue.places.erase(queue.places.begin() + static_cast<std::ptrdiff_t>(in_front()));
        if (has_turn_) {
            --queue.turns;
            queue.quiet_until = task_->now() + quiet_time;
        }
        if (queue.places.empty())
            queues_.queues_.erase(at_);
        else
            give_turns(queue);
    }

    static void give_turns(Queue& queue) noexcept {
        for (std::size_t i = 0; i < std::min(with_turn, queue.places.size()); ++i) {
            auto& place = *queue.places[i];
            if (place.has_turn_ || queue.turns >= most_with_turn) continue;
            place.has_turn_ = true;
            ++queue.turns;
            place.task_->wake();
        }
    }

    LocalQueues& queues_;
    Task* task_ = nullptr;
    Queues::iterator at_{};
    Clock::time_point since_{};
    bool joined_ = false;
    bool has_turn_ = false;
    bool is_scheduled_ = false;  // may_attempt() has chosen the instant of an attempt
};

}  // namespace redlock::loop
