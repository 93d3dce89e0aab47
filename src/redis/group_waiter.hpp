// A client that waits at one node of a NodeGroup, over a connection of its own.
#pragma once

#include <redlock/nodes.hpp>

#include "../os/network.hpp"
#include "node.hpp"
#include "queue_refusals.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock {

class GroupWaiter final : public Waiter {
public:
    /// Does no I/O. All arguments must outlive the object.
    GroupWaiter(std::span<Node* const> nodes, Network& network, std::chrono::milliseconds node_timeout)
        : nodes_(nodes), network_(network), node_timeout_(node_timeout), refusals_(nodes) {}
    /// Gives the connection back to its node, which keeps it for the next waiter.
    ~GroupWaiter() override;

    bool listen(NodeSet homes, const RoundLimits& limits) override;
    std::size_t home() const noexcept override { return home_; }
    std::string new_ticket() override { return ticket_ = listener_->new_ticket(); }
    WakeUp sleep(Clock::time_point until, const std::stop_token& stop) override;
    void disconnect(std::error_code refused, std::string_view words) override;
    void report_refusals(Tally& tally) const override { refusals_.report(tally, network_.clock().now()); }

private:
    bool listen_at(std::size_t node, const RoundLimits& limits);
    void wait(const Connection& connection, Clock::time_point until, const std::stop_token& stop);

    const std::span<Node* const> nodes_;
    Network& network_;
    const std::chrono::milliseconds node_timeout_;
    std::size_t home_ = 0;
    std::unique_ptr<Listener> listener_{};  // null if it listens at no node
    std::string ticket_{};                  // the newest
    QueueRefusals refusals_;
};

}  // namespace redlock
