// N Redis servers in memory, asked in the very bytes that real ones are sent; nothing gets lost.
#pragma once

#include "support/command_reader.hpp"
#include "support/redis_model.hpp"

#include <redlock/detail/command_encoding.hpp>
#include <redlock/detail/reply.hpp>
#include <redlock/nodes.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {

class RedisModelNodes : public Nodes {
public:
    explicit RedisModelNodes(std::size_t size) : Nodes(names(size)) {
        for (const auto& run_id : names(size)) servers_.emplace_back(run_id);
    }

    support::RedisModel& operator[](std::size_t node) { return servers_.at(node); }
    std::string get(std::size_t node, const std::string& key) {
        return text_of(servers_.at(node).execute({"GET", key}, now));
    }
    std::string counter(std::size_t node, const std::string& resource) {
        return get(node, detail::counter_of(resource, servers_.at(node).run_id()));
    }
    /// It is asked nothing.
    NodeSet down{};
    /// The wall clock of all of them, and by how much the last one's is behind it.
    support::RedisModel::Time now = std::chrono::seconds{1'760'000'000};
    support::RedisModel::Time last_is_late{};

    void ask(std::span<const Request> requests, const RoundLimits&, std::span<Tally> tallies) override {
        for (std::size_t i = 0; i < requests.size(); ++i)
            for (std::size_t node = 0; node < size(); ++node)
                if (requests[i].to[node] && !down[node]) ask(node, requests[i].command, tallies[i]);
        now += std::chrono::milliseconds{1};
    }

private:
    static std::vector<std::string> names(std::size_t size) {
        std::vector<std::string> result;
        for (std::size_t node = 0; node < size; ++node) result.push_back("node" + std::to_string(node));
        return result;
    }

    support::RedisModel::Time clock_of(std::size_t node) const {
        return node + 1 == size() ? now - last_is_late : now;
    }

    void ask(std::size_t node, const Command& command, Tally& tally) {
        const detail::Recipient recipient{.run_id = servers_[node].run_id()};
        std::string bytes;
        append(bytes, command, recipient, detail::ScriptForm::whole);
        support::CommandReader reader{std::numeric_limits<std::size_t>::max()};
        reader.take(bytes, [&](const auto& words) {
            const bool scripted = script_of(command, recipient) != nullptr;
            const auto vote =
                to_vote(command, as_read(servers_[node].execute(words, clock_of(node))), scripted);
            tally[node] = {.name = tally[node].name,
                           .vote = vote.vote,
                           .cause = vote.cause,
                           .count = vote.count,
                           .sent = true};
        });
    }

    static detail::Reply as_read(support::RedisReply reply) {
        using Kind = detail::Reply::Kind;
        constexpr std::array kinds{Kind::nil,     Kind::status, Kind::error,
                                   Kind::integer, Kind::text,   Kind::list};
        return {.kind = kinds.at(static_cast<std::size_t>(reply.kind)),
                .integer = reply.integer,
                .text = std::move(reply.text)};
    }

    std::vector<support::RedisModel> servers_{};
};

}  // namespace redlock::test
