// The nodes as one process has them, over a network that a test has made.
#pragma once

#include "redis/lanes.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace redlock::support {

class NodesOverLanes : public Nodes {
public:
    NodesOverLanes(std::vector<std::string> names, std::vector<NodeConfig> configs,
                   const NodesOptions& options, Network& network, std::size_t processors)
        : Nodes(std::move(names), options.node_timeout, options.quarantine),
          network_(network),
          configs_(for_one_process(std::move(configs))),
          lanes_(configs_, options, network, processors) {}

    using Nodes::ask;
    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        lanes_.ask(requests, limits, tallies);
    }
    std::unique_ptr<Waiter> waiter() override { return lanes_.waiter(); }
    Clock* required_clock() const noexcept override { return &network_.clock(); }

protected:
    Network& network_;
    const std::vector<NodeConfig> configs_;
    Lanes lanes_;
};

}  // namespace redlock::support
