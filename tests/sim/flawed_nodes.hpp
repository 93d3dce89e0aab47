// The seams of a client, between the lock and its nodes and its clock, where the flaws of clients are put.
// Without flaws they pass everything on.
#pragma once

#include "flaws.hpp"
#include "process.hpp"

#include <redlock/nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace redlock::sim {

class FlawedClock final : public Clock {
public:
    explicit FlawedClock(Process& process) : process_(process), clock_(process) {}

    time_point now() noexcept override {
        if (echoes_ > 0 && process_.current() == listener_) return echo();
        const auto now = clock_.now();
        return std::min(now, std::exchange(next_, never()));
    }
    void sleep_until(time_point until, std::stop_token stop) override {
        clock_.sleep_until(until, std::move(stop));
    }

    /// What it says when it is asked next, if it is later by then.
    void say_once(time_point at) noexcept { next_ = at; }

    /// It tells this fiber the time, and then the same `times` times more.
    void repeat(std::size_t times) noexcept {
        listener_ = process_.current();
        echoes_ = times + 1;
        echo_.reset();
    }

private:
    time_point echo() noexcept {
        --echoes_;
        if (!echo_) echo_ = clock_.now();
        return *echo_;
    }

    Process& process_;
    SimClock clock_;
    time_point next_ = never();
    Task* listener_ = nullptr;
    std::size_t echoes_ = 0;
    std::optional<time_point> echo_{};
};

class FlawedNodes final : public Nodes {
public:
    FlawedNodes(Nodes& nodes, FlawedClock& clock, Flaws flaws)
        : Nodes(names_of(nodes), nodes.node_timeout(), nodes.quarantine()),
          nodes_(nodes),
          clock_(clock),
          flaws_(flaws) {}

    Tally ask(const Command& command, const Terms& terms) override {
        if (flaws_.no_second_round && std::holds_alternative<RaiseCount>(command)) return all_grant();
        auto tally = nodes_.ask(command, adapted(command, terms));
        if (flaws_.quorum_half && tally.granted() == size() / 2) grant_one_more(tally);
        if (flaws_.release_to_granters && acquires(command)) remember_granters(command, tally);
        if (flaws_.late_confirmation && std::holds_alternative<CompareAndExpire>(command))
            clock_.say_once(terms.deadline - Clock::duration{1});
        return tally;
    }

    std::vector<Tally> extend_all(std::span<const Extension> extensions,
                                  Clock::time_point deadline) override {
        auto tallies = nodes_.extend_all(extensions, flaws_.notice_late ? Clock::never() : deadline);
        if (flaws_.quorum_half)
            for (auto& tally : tallies)
                if (tally.granted() == size() / 2) grant_one_more(tally);
        if (flaws_.commit_without_look) clock_.repeat(extensions.size());
        return tallies;
    }

private:
    static std::vector<std::string> names_of(const Nodes& nodes) {
        std::vector<std::string> names;
        for (std::size_t node = 0; node < nodes.size(); ++node) names.emplace_back(nodes.name(node));
        return names;
    }

    static std::string owner_of(const Command& command) {
        return std::visit([](const auto& it) { return std::string{it.owner}; }, command);
    }

    Terms adapted(const Command& command, Terms terms) const {
        if (flaws_.late_confirmation && std::holds_alternative<CompareAndExpire>(command))
            terms.deadline = Clock::never();
        const auto granters = granters_.find(owner_of(command));
        if (granters != granters_.end() && std::holds_alternative<CompareAndDelete>(command))
            terms.to = granters->second;
        return terms;
    }

    Tally all_grant() const {
        auto tally = blank_tally();
        for (std::size_t node = 0; node < size(); ++node) tally.grant(node);
        return tally;
    }

    void grant_one_more(Tally& tally) const {
        for (std::size_t node = 0; node < size(); ++node)
            if (tally[node].vote != Vote::granted) return tally.grant(node);
    }

    void remember_granters(const Command& command, const Tally& tally) {
        auto& granters = granters_[owner_of(command)];
        for (std::size_t node = 0; node < size(); ++node) granters[node] = tally[node].vote == Vote::granted;
    }

    Nodes& nodes_;
    FlawedClock& clock_;
    Flaws flaws_;
    std::map<std::string, NodeSet> granters_{};
};

}  // namespace redlock::sim
