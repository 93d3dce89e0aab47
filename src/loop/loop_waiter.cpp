#include "loop_waiter.hpp"

#include "../flow/flow.hpp"

#include <algorithm>
#include <utility>

namespace redlock::loop {

using ListenerState = Listeners::State;

LoopWaiter::~LoopWaiter() {
    if (joined_) listeners_.leave(*tried_, *this, true);
    leave_home(true);
}

/// Ends the use of the listener at the home node.
void LoopWaiter::leave_home(bool keeps) noexcept {
    if (!listens()) return;
    listeners_.forget(home_, ticket_);
    ticket_.clear();
    listeners_.leave(home_, *this, keeps);
    woken_ = false;
}

void LoopWaiter::disconnect(std::error_code refused, std::string_view words) {
    leave_home(false);
    if (refused) refusals_.add(home_, {refused, std::string{words}}, clock_.now());
}

void LoopWaiter::lose_subscription() {
    if (listens()) listeners_.lose_subscription(home_, ticket_);
    leave_home(false);
}

bool LoopWaiter::await_turn(Task& task, flow::Turn& turn) {
    turn.has_come = place_.take(task, turn.resource.front(), turn.since);
    if (turn.has_come) {
        if (turn.place) place_.record(*turn.place);
        return true;
    }
    const auto now = clock_.now();
    const bool over = turn.limits->stop.stop_requested() || now >= turn.limits->deadline;
    if (over || place_.may_attempt(now, turn.attempt_due)) {
        if (const auto place = place_.estimate()) turn.place = place;
        return true;
    }
    task.wake_at(std::min(turn.limits->deadline, turn.attempt_due));
    return false;
}

/// Tries one node after the other. The waiter keeps its home node until an earlier one has confirmed the
/// subscription.
std::optional<bool> LoopWaiter::listen_in_steps(Task& task, NodeSet homes, const RoundLimits& limits) {
    task_ = &task;
    if (!tried_ && !homes[home_]) leave_home(false);
    if (!tried_) tried_ = 0;
    for (; *tried_ < nodes_; ++*tried_) {
        if (listens() && *tried_ == home_) break;
        if (!homes[*tried_]) continue;
        if (!try_next(limits)) return std::nullopt;
        if (listens() && *tried_ == home_) break;
    }
    const bool found = *tried_ < nodes_;
    tried_.reset();
    return found;
}

/// Returns false while the listener of the node is subscribing. If it has subscribed, the node is the home
/// node afterwards.
bool LoopWaiter::try_next(const RoundLimits& limits) {
    const auto node = *tried_;
    const auto now = clock_.now();
    const bool over = limits.stop.stop_requested() || now >= limits.deadline;
    if (!joined_) {
        if (over || refusals_.concern(node, now) || !listeners_.join(node, *this, listens())) return true;
        joined_ = true;
    }
    const auto state = listeners_.state(node, *this);
    if (state == ListenerState::subscribing && !over) {
        task_->wake_at(limits.deadline);
        return false;
    }
    // Without memory for the ticket, the waiter stays joined, and its destructor leaves the listener.
    auto ticket =
        state == ListenerState::listening ? listeners_.new_ticket(node, *this, place_.resource()) : "";
    joined_ = false;
    if (state != ListenerState::listening) {
        listeners_.leave(node, *this, false);
        return true;
    }
    leave_home(false);
    home_ = node;
    ticket_ = std::move(ticket);
    return true;
}

bool LoopWaiter::on_message() noexcept {
    if (std::exchange(woken_, true)) return false;
    task_->wake();
    return true;
}

std::optional<Waiter::WakeUp> LoopWaiter::sleep_in_steps(Task& task, Clock::time_point until,
                                                         const std::stop_token& stop) {
    task_ = &task;
    if (std::exchange(woken_, false)) return WakeUp{true, ticket_};
    if (!listens() || listeners_.state(home_, *this) != ListenerState::listening) {
        leave_home(false);  // The next attempt to listen shows whether the node has failed.
        return WakeUp{};
    }
    if (stop.stop_requested() || clock_.now() >= until) return WakeUp{true};
    task.wake_at(until);
    return std::nullopt;
}

}  // namespace redlock::loop
