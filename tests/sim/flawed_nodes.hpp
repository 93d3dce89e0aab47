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

    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        const bool watched = Process::running() && Process::running()->in_background();
        if (watched) return ask_for_a_watchdog(requests, limits, tallies);
        for (std::size_t i = 0; i < requests.size(); ++i) ask_one(requests[i], limits, tallies[i]);
    }

private:
    void ask_one(const Request& request, const RoundLimits& limits, Tally& tally) {
        const auto& command = request.command;
        const bool late = flaws_.late_confirmation && command.verb == Verb::compare_and_expire;
        if (flaws_.no_second_round && command.verb == Verb::raise_count) return grant_all(tally);
        const auto patient =
            RoundLimits{.deadline = late ? Clock::never() : limits.deadline, .stop = limits.stop};
        const auto to = adapted(request);
        nodes_.ask({&to, 1}, patient, {&tally, 1});
        if (flaws_.quorum_half && tally.granted() == size() / 2) grant_one_more(tally);
        if (flaws_.release_to_granters && acquires(command.verb)) remember_granters(command, tally);
        if (late) clock_.say_once(limits.deadline - Clock::duration{1});
    }

    void ask_for_a_watchdog(std::span<const Request> requests, const RoundLimits& limits,
                            std::span<Tally> tallies) {
        nodes_.ask(requests, {.deadline = flaws_.notice_late ? Clock::never() : limits.deadline}, tallies);
        if (flaws_.quorum_half)
            for (auto& tally : tallies)
                if (tally.granted() == size() / 2) grant_one_more(tally);
        if (flaws_.commit_without_look) clock_.repeat(requests.size());
    }

    static std::vector<std::string> names_of(const Nodes& nodes) {
        std::vector<std::string> names;
        for (std::size_t node = 0; node < nodes.size(); ++node) names.emplace_back(nodes.name(node));
        return names;
    }

    Request adapted(Request request) const {
        const auto granters = granters_.find(std::string{request.command.owner});
        if (granters != granters_.end() && request.command.verb == Verb::compare_and_delete)
            request.to = granters->second;
        return request;
    }

    void grant_all(Tally& tally) const {
        for (std::size_t node = 0; node < size(); ++node) tally.grant(node);
    }

    void grant_one_more(Tally& tally) const {
        for (std::size_t node = 0; node < size(); ++node)
            if (tally[node].vote != Vote::granted) return tally.grant(node);
    }

    void remember_granters(const Command& command, const Tally& tally) {
        auto& granters = granters_[std::string{command.owner}];
        for (std::size_t node = 0; node < size(); ++node) granters[node] = tally[node].vote == Vote::granted;
    }

    Nodes& nodes_;
    FlawedClock& clock_;
    Flaws flaws_;
    std::map<std::string, NodeSet> granters_{};
};

}  // namespace redlock::sim
