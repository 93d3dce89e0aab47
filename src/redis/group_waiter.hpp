// One that waits at a node of a NodeGroup, over a connection that does nothing but listen.
#pragma once

#include <redlock/nodes.hpp>

#include "os/network.hpp"
#include "redis/node.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock {

class GroupWaiter final : public Waiter {
public:
    /// No I/O. All of them must outlive it.
    GroupWaiter(std::span<const std::unique_ptr<Node>> nodes, Network& network,
                std::chrono::milliseconds node_timeout)
        : nodes_(nodes), network_(network), node_timeout_(node_timeout) {}
    /// Its node keeps the connection for the next one.
    ~GroupWaiter() override;

    bool listen(NodeSet homes, const RoundLimits& limits) override;
    std::size_t home() const noexcept override { return home_; }
    std::string new_ticket() override { return listener_->new_ticket(); }
    WakeUp sleep(Clock::time_point until, const std::stop_token& stop) override;
    void disconnect(std::error_code refused, std::string_view words) override;
    void report_refusals(Tally& tally) const override;

private:
    bool listen_at(std::size_t node, const RoundLimits& limits);
    void wait(Clock::time_point until, const std::stop_token& stop);

    const std::span<const std::unique_ptr<Node>> nodes_;
    Network& network_;
    const std::chrono::milliseconds node_timeout_;
    std::size_t home_ = 0;
    std::unique_ptr<Listener> listener_{};
    std::array<std::optional<detail::NodeFailure>, max_nodes> refused_{};  // this resource a queue, no other
};

}  // namespace redlock
