// A client that waits at one node of a NodeGroup, over a connection of its own.
#pragma once

#include <redlock/nodes.hpp>

#include "node_group.hpp"
#include "queue_refusals.hpp"

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock {

class GroupWaiter final : public Waiter {
public:
    /// Does no I/O. `group` must outlive the object.
    explicit GroupWaiter(NodeGroup& group) : group_(group), refusals_(group.listeners()) {}
    /// Gives the connection back to its node, which keeps it for the next waiter.
    ~GroupWaiter() override;

    bool listen(NodeSet homes, const RoundLimits& limits) override;
    std::size_t home() const noexcept override { return home_; }
    std::string new_ticket() override { return ticket_ = listener_->new_ticket(); }
    WakeUp sleep(Clock::time_point until, const std::stop_token& stop) override;
    void disconnect(std::error_code refused, std::string_view words) override;
    void lose_subscription() override;
    void report_refusals(Tally& tally) const override { refusals_.report(tally, clock().now()); }

private:
    bool listen_at(std::size_t node, const RoundLimits& limits);
    void wait(const Connection& connection, Clock::time_point until, const std::stop_token& stop);

    ListenerPool& listeners_of(std::size_t node) const { return *group_.listeners()[node]; }
    Clock& clock() const noexcept { return group_.network().clock(); }

    NodeGroup& group_;
    std::size_t home_ = 0;
    std::unique_ptr<Listener> listener_{};  // null if it listens at no node
    std::string ticket_{};                  // the newest
    QueueRefusals refusals_;
};

}  // namespace redlock
