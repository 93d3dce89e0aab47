// Nodes in memory, mostly one, whose answer to each command is a function of the test.
#pragma once

#include <redlock/nodes.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace redlock::support {

class AnsweringNode final : public Nodes {
public:
    /// Records the votes in the tally.
    using Answer = std::function<void(const Command& command, Tally& tally)>;

    explicit AnsweringNode(Answer answer, std::vector<std::string> names = {"a"})
        : Nodes(std::move(names), std::chrono::milliseconds{50}), answer_(std::move(answer)) {}
    using Nodes::ask;
    void ask(std::span<const Request> requests, const RoundLimits&, std::span<Tally> tallies) override {
        for (std::size_t i = 0; i < requests.size(); ++i) answer_(requests[i].command, tallies[i]);
    }

private:
    const Answer answer_;
};

}  // namespace redlock::support
