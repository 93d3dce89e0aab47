// The limit of the rounds that are under way in one event loop. They share one connection to each node.
// Without a limit, the commands of 10,000 operations that begin at the same time would wait on the connection
// while the node_timeout of their rounds passes. The watchdog of the loop makes one round at a time, and
// needs no place. Otherwise leases would be lost while operations wait.
#pragma once

#include <redlock/detail/linked_list.hpp>

#include "scheduler.hpp"

#include <cstddef>
#include <utility>

namespace redlock::loop {

class RoundPlaces {
public:
    static constexpr std::size_t size = 512;

    /// The place of one task, or its wait for one. The tasks get places in the order in which they have begun
    /// to wait.
    class Place : public detail::Linked<Place> {
    public:
        Place(RoundPlaces& places, Task& task) : places_(places), task_(task) {}
        ~Place() { give_back(); }

        /// Returns true if the task has a place. Otherwise it begins to wait, and is woken when it has one.
        bool take() noexcept;
        /// Gives the place to the task that waits longest. If this task waits itself, ends the wait.
        void give_back() noexcept;

    private:
        RoundPlaces& places_;
        Task& task_;
        bool has_place_ = false;  // if not, it waits while it is in the list
    };

private:
    std::size_t free_ = size;
    detail::LinkedList<Place> waiting_{};
};

inline bool RoundPlaces::Place::take() noexcept {
    if (has_place_ || detail::LinkedList<Place>::has(*this)) return has_place_;
    has_place_ = places_.free_ > 0;
    if (has_place_)
        --places_.free_;
    else
        places_.waiting_.add(*this);
    return has_place_;
}

inline void RoundPlaces::Place::give_back() noexcept {
    detail::LinkedList<Place>::remove(*this);
    if (!std::exchange(has_place_, false)) return;
    auto* const next = places_.waiting_.take();
    if (!next) {
        ++places_.free_;
        return;
    }
    next->has_place_ = true;
    next->task_.wake();
}

}  // namespace redlock::loop
