#include "group_waiter.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace redlock {

GroupWaiter::~GroupWaiter() {
    try {
        if (listener_) nodes_[home_]->listeners().check_in(std::move(listener_), network_.clock().now());
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the next waiter connects again
    }
}

/// A probe of a node that has failed may take node_timeout in vain. Therefore a waiter without a home node
/// first tries the trusted nodes. If none of them accepts, it probes the others. It does not leave the
/// probes to the rounds, because none may be under way.
bool GroupWaiter::listen(NodeSet homes, const RoundLimits& limits) {
    if (!homes[home_]) disconnect({}, {});
    if (listener_) return listen_at_first(homes, true, limits);
    return listen_at_first(homes, false, limits) || listen_at_first(homes, true, limits);
}

/// Tries the nodes in order up to the present home node, and stays there if none of them accepts. `may_probe`
/// says whether nodes that have failed are tried, too.
bool GroupWaiter::listen_at_first(NodeSet homes, bool may_probe, const RoundLimits& limits) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        if (listener_ && node == home_) return true;
        const bool refused = refusals_.concern(node, network_.clock().now());
        if (homes[node] && !refused && listen_at(node, may_probe, limits)) return true;
    }
    return false;
}

/// Subscribes at this node, and then disconnects from the present home node. Returns false, and stays at the
/// present home node, if the other node does not answer in time or refuses the subscription, or if a stop is
/// requested.
bool GroupWaiter::listen_at(std::size_t node, bool may_probe, const RoundLimits& limits) {
    const auto start = network_.clock().now();
    if (limits.stop.stop_requested() || start >= limits.deadline) return false;  // begins no probe in vain
    const auto deadline = std::min(start + node_timeout_, limits.deadline);
    auto listener = nodes_[node]->listeners().check_out(start, may_probe);
    if (!listener) return false;
    const bool is_new = !listener->listens();
    if (await_subscription(*listener, deadline, limits.stop)) {
        if (is_new) nodes_[node]->connected(listener->connection());
        disconnect({}, {});
        listener_ = std::move(listener);
        home_ = node;
        return true;
    }
    auto& connection = listener->connection();
    const auto now = network_.clock().now();
    if (!connection.broken() && now >= deadline && deadline < limits.deadline)
        connection.fail(Errc::timed_out, "while it was to listen");
    if (connection.broken() && nodes_[node]->could_not_listen(connection, now))
        refusals_.add(node, {connection.cause(), connection.detail()}, now);
    nodes_[node]->listeners().drop(std::move(listener));
    return false;
}

/// Connects and subscribes. Returns true once the server has confirmed the subscription.
bool GroupWaiter::await_subscription(Listener& listener, Clock::time_point until,
                                     const std::stop_token& stop) {
    for (;;) {
        if (listener.listens()) return true;
        if (listener.connection().broken() || stop.stop_requested()) return false;
        if (network_.clock().now() >= until) return false;
        wait(listener.connection(), until, stop);
        listener.advance();
    }
}

std::string GroupWaiter::new_ticket() {
    return ticket_ = listener_->new_ticket();
}

/// Reads what has arrived, but no more than a limit. Returns the ticket of this waiter if it has arrived.
/// Otherwise returns an earlier ticket of this listener, or an empty text if all messages are foreign.
/// Returns nothing if no message has arrived.
std::optional<std::string> GroupWaiter::read_messages() {
    constexpr int most_reads = 16;  // of 16 KiB each
    std::optional<std::string> earlier;
    for (int reads = 0; reads < most_reads; ++reads) {
        listener_->advance();
        const auto messages = listener_->connection().take_messages();
        if (messages.empty()) break;
        if (!earlier) earlier.emplace();
        for (const auto& message : messages) {
            if (message == ticket_) return ticket_;
            if (listener_->has_issued(message)) earlier = message;
        }
    }
    return earlier;
}

/// The message that wakes this waiter mostly comes alone. If the waiter has to sleep again after a message,
/// another client publishes on its channel. It then reads only once in 10 ms, because each message would cost
/// a system call or two, and a flood of them would keep the processor busy.
Waiter::WakeUp GroupWaiter::sleep(Clock::time_point until, const std::stop_token& stop) {
    constexpr auto shortest_pause = std::chrono::milliseconds{10};
    auto& connection = listener_->connection();
    network_.clock().sleep_until(std::min(until, next_read_), stop);
    for (;;) {
        if (auto message = read_messages()) {
            next_read_ = network_.clock().now() + shortest_pause;
            return {true, *std::move(message)};
        }
        if (connection.broken()) break;
        if (stop.stop_requested() || network_.clock().now() >= until) return {true};
        wait(connection, until, stop);
    }
    disconnect({}, {});  // The next attempt to listen shows whether the node has failed.
    return {};
}

void GroupWaiter::disconnect(std::error_code refused, std::string_view words) {
    if (listener_) nodes_[home_]->listeners().drop(std::move(listener_));
    if (refused == Errc::lost)
        nodes_[home_]->listeners().drop_all();  // The connections of former waiters may lead there, too.
    else if (refused)
        refusals_.add(home_, {refused, std::string{words}}, network_.clock().now());
}

void GroupWaiter::report_refusals(Tally& tally) const {
    refusals_.report(tally, network_.clock().now());
}

void GroupWaiter::wait(const Connection& connection, Clock::time_point until, const std::stop_token& stop) {
    auto entry = connection.poll_entry();
    network_.wait({&entry, 1}, network_.clock().now(), until, stop);
}

}  // namespace redlock
