// The rounds of a Nodes that cannot make them in steps: each round calls Nodes::ask() and blocks the loop.
#pragma once

#include "rounds.hpp"

namespace redlock::loop {

class BlockingRounds final : public Rounds {
public:
    /// `nodes` must outlive the object.
    explicit BlockingRounds(Nodes& nodes) : nodes_(nodes) {}

    std::unique_ptr<RoundInSteps> begin(Task&, std::span<const Request> requests, const RoundLimits& limits,
                                        std::span<Tally> tallies) override {
        return std::make_unique<Ask>(nodes_, requests, limits, tallies);
    }
    void on_ready(int) override {}
    void detach() noexcept override {}

private:
    class Ask final : public RoundInSteps {
    public:
        Ask(Nodes& nodes, std::span<const Request> requests, const RoundLimits& limits,
            std::span<Tally> tallies)
            : nodes_(nodes), requests_(requests), limits_(limits), tallies_(tallies) {}
        std::optional<Clock::time_point> advance() override {
            nodes_.ask(requests_, limits_, tallies_);
            return std::nullopt;
        }

    private:
        Nodes& nodes_;
        const std::span<const Request> requests_;
        const RoundLimits& limits_;
        const std::span<Tally> tallies_;
    };

    Nodes& nodes_;
};

}  // namespace redlock::loop
