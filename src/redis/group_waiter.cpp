#include "redis/group_waiter.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace redlock {

GroupWaiter::~GroupWaiter() {
    try {
        if (listener_) nodes_[home_]->check_in_listener(std::move(listener_), network_.clock().now());
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a connection less
    }
}

bool GroupWaiter::listen(NodeSet homes, const RoundLimits& limits) {
    disconnect({}, {});
    for (std::size_t node = 0; node < nodes_.size(); ++node)
        if (homes[node] && !refused_[node] && listen_at(node, limits)) return true;
    return false;
}

bool GroupWaiter::listen_at(std::size_t node, const RoundLimits& limits) {
    const auto start = network_.clock().now();
    const auto deadline = std::min(start + node_timeout_, limits.deadline);
    home_ = node;
    listener_ = nodes_[node]->check_out_listener(start);
    if (!listener_) return false;
    auto& connection = listener_->connection();
    for (auto now = start; now < deadline && !limits.stop.stop_requested(); now = network_.clock().now()) {
        if (listener_->listens()) return true;
        if (connection.broken()) break;
        wait(deadline, limits.stop);
        listener_->advance();
    }
    const auto now = network_.clock().now();
    if (!connection.broken() && now >= deadline && deadline < limits.deadline)
        connection.fail(Errc::timed_out, "while it was to listen");
    if (connection.broken() && is_transient(connection.cause()))
        nodes_[node]->failed({connection.cause(), connection.detail()}, now);
    const bool refused = connection.broken() && !is_transient(connection.cause());
    const auto why = refused ? connection.cause() : std::error_code{};
    disconnect(why, connection.detail());
    return false;
}

Waiter::WakeUp GroupWaiter::sleep(Clock::time_point until, const std::stop_token& stop) {
    auto& connection = listener_->connection();
    for (;;) {
        listener_->advance();
        if (auto ticket = connection.take_message(); !ticket.empty()) return {true, std::move(ticket)};
        if (connection.broken()) break;
        if (stop.stop_requested() || network_.clock().now() >= until) return {true};
        wait(until, stop);
    }
    disconnect({}, {});  // whether the node has failed is seen when it is connected to again
    return {};
}

void GroupWaiter::disconnect(std::error_code refused, std::string_view words) {
    if (listener_) nodes_[home_]->drop_listener(std::move(listener_));
    if (!refused) return;
    detail::NodeFailure why{refused, std::string{words}};
    if (refused == Errc::wrong_type)
        refused_[home_] = std::move(why);
    else
        nodes_[home_]->refused_to_queue(std::move(why), network_.clock().now());
}

void GroupWaiter::report_refusals(Tally& tally) const {
    const auto now = network_.clock().now();
    for (std::size_t node = 0; node < nodes_.size(); ++node)
        if (auto refusal = refused_[node]; refusal || (refusal = nodes_[node]->queue_refusal(now))) {
            tally.mark_not_sent(node, refusal->cause);
            tally[node].detail = refusal->detail;
        }
}

void GroupWaiter::wait(Clock::time_point until, const std::stop_token& stop) {
    auto entry = listener_->connection().poll_entry();
    network_.wait({&entry, 1}, network_.clock().now(), until, stop);
}

}  // namespace redlock
