// The limit of the rounds that are under way in one event loop. The rounds share one connection to each node.
// Without a limit, 10,000 operations that begin at the same time would begin 10,000 rounds. Most of their
// commands would wait for their turn on the connection, while the node_timeout of their rounds passes. The
// watchdog of the loop makes one round at a time, and needs no place. Otherwise leases would be lost while
// operations wait for silent servers.
#pragma once

#include <redlock/detail/linked_list.hpp>

#include "scheduler.hpp"

#include <cstddef>
#include <cstdint>

namespace redlock::loop {

class RoundPlaces {
public:
    static constexpr std::size_t size = 256;

    /// The place of one task, or its wait for one. The tasks get places in the order in which they have begun
    /// to wait.
    class Place : public detail::Linked<Place> {
    public:
        Place(RoundPlaces& places, Task& task) : places_(places), task_(task) {}
        ~Place() { give_back(); }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

        /// Returns true if the task has a place. Otherwise it begins to wait, and is woken when it has one.
        bool take() noexcept;
        /// Gives the place to the task that waits longest. If this task waits itself, ends the wait.
        void give_back() noexcept;

    private:
        enum class State : std::uint8_t { none, waiting, taken };

        RoundPlaces& places_;
        Task& task_;
        State state_ = State::none;
    };

private:
    std::size_t free_ = size;
    detail::LinkedList<Place> waiting_{};
};

inline bool RoundPlaces::Place::take() noexcept {
    if (state_ == State::none && places_.free_ > 0) {
        --places_.free_;
        state_ = State::taken;
    } else if (state_ == State::none) {
        places_.waiting_.add(*this);
        state_ = State::waiting;
    }
    return state_ == State::taken;
}

inline void RoundPlaces::Place::give_back() noexcept {
    if (state_ == State::waiting) {
        places_.waiting_.remove(*this);
    } else if (state_ == State::taken && places_.waiting_.empty()) {
        ++places_.free_;
    } else if (state_ == State::taken) {
        auto& next = *places_.waiting_.take();
        next.state_ = State::taken;
        next.task_.wake();
    }
    state_ = State::none;
}

}  // namespace redlock::loop
