#include "group_waiter.hpp"

#include <redlock/detail/memory.hpp>

#include <algorithm>
#include <utility>

namespace redlock {

GroupWaiter::~GroupWaiter() {
    (void)detail::has_memory_for([this] {  // otherwise the next waiter connects again
        if (listener_) listeners_of(home_).check_in(std::move(listener_), clock().now());
    });
}

/// Tries the nodes in order up to the present home node, and stays there if none of them accepts.
bool GroupWaiter::listen(NodeSet homes, const RoundLimits& limits) {
    if (!homes[home_]) disconnect({}, {});
    for (std::size_t node = 0; node < group_.nodes().size(); ++node) {
        if (listener_ && node == home_) return true;
        const bool refused = refusals_.concern(node, clock().now());
        if (homes[node] && !refused && listen_at(node, limits)) return true;
    }
    return false;
}

/// Subscribes at this node, and then disconnects from the present home node. Returns false, and stays there,
/// if this does not succeed in time or a stop is requested. Only a waiter with a home node probes a node that
/// has failed, because a probe may take node_timeout in vain.
bool GroupWaiter::listen_at(std::size_t node, const RoundLimits& limits) {
    auto now = clock().now();
    const auto is_over = [&] { return limits.stop.stop_requested() || now >= limits.deadline; };
    if (is_over()) return false;  // begins no probe in vain
    const auto until = now + group_.node_timeout();
    auto listener = listeners_of(node).check_out(now, listener_ != nullptr);
    if (!listener) return false;
    while (!listeners_of(node).subscribe(*listener, until, now)) {
        if (listener->connection().broken() || is_over()) {
            listeners_of(node).drop(std::move(listener));
            return false;
        }
        wait(listener->connection(), std::min(until, limits.deadline), limits.stop);
        now = clock().now();
    }
    disconnect({}, {});
    listener_ = std::move(listener);
    home_ = node;
    return true;
}

/// Returns the ticket of this waiter if it has arrived, and otherwise an earlier ticket of this listener.
Waiter::WakeUp GroupWaiter::sleep(Clock::time_point until, const std::stop_token& stop) {
    auto& connection = listener_->connection();
    for (WakeUp result{.connected = true};;) {
        const auto now = clock().now();
        listener_->read(now, [&](const std::string& message) {
            if (result.ticket == ticket_ || !listener_->has_issued(message)) return false;
            result.ticket = message;
            return message == ticket_;
        });
        if (!result.ticket.empty()) return result;
        if (connection.broken()) break;
        if (stop.stop_requested() || now >= until) return result;
        if (now < listener_->next_read())
            clock().sleep_until(std::min(until, listener_->next_read()), stop);
        else
            wait(connection, until, stop);
    }
    disconnect({}, {});  // The next attempt to listen shows whether the node has failed.
    return {};
}

void GroupWaiter::disconnect(std::error_code refused, std::string_view words) {
    if (listener_) listeners_of(home_).drop(std::move(listener_));
    if (refused) refusals_.add(home_, {refused, std::string{words}}, clock().now());
}

void GroupWaiter::lose_subscription() {
    disconnect({}, {});
    listeners_of(home_).drop_all();  // The connections of former waiters may lead there, too.
}

void GroupWaiter::wait(const Connection& connection, Clock::time_point until, const std::stop_token& stop) {
    auto entry = connection.poll_entry();
    group_.network().wait({&entry, 1}, clock().now(), until, stop);
}

}  // namespace redlock
