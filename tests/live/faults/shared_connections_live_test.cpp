// A thousand rounds at once over real servers in one thread, over one connection to each server.
#include "support/cluster.hpp"
#include "support/round_loop.hpp"

#include "os/os_network.hpp"
#include "redis/node_group.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redlock::test {
namespace {

using namespace std::chrono_literals;
using support::SharedRound;

#ifndef REDLOCK_CLIENTS
#define REDLOCK_CLIENTS 1000
#endif
constexpr std::size_t clients = REDLOCK_CLIENTS;
constexpr auto node_timeout = 2s;  // so that a busy machine does not exceed it

class ManyRounds : public testing::Test {
protected:
    /// One client of many. It acquires, queries and releases its own resource, again and again. Every eighth
    /// client wants a resource that somebody else holds, and must always be refused.
    struct Client {
        std::size_t number = 0;
        std::string resource{};
        std::size_t attempts = 0;
        NodeSet sent{};
        std::unique_ptr<SharedRound> round{};
        std::unique_ptr<SharedRound> ended{};  // it may not be destroyed while it calls its End

        bool is_refused() const { return number % 8 == 0; }
        std::string owner() const { return std::to_string(number) + "/" + std::to_string(attempts); }
    };

    ManyRounds() {
        for (std::size_t i = 0; i < clients; ++i) {
            all.push_back({.number = i, .resource = "resource " + std::to_string(i)});
            if (!all.back().is_refused()) continue;
            for (const auto& server : cluster) server.command({"SET", all.back().resource, "somebody"});
        }
    }

    std::vector<NodeConfig> configs() {
        std::vector<NodeConfig> result;
        for (const auto& server : cluster)
            result.push_back(NodeConfig::of(Endpoint::parse(server.uri()), node_timeout));
        return result;
    }

    void begin(Client& client, Verb verb, NodeSet to, std::function<void()> end) {
        client.ended = std::move(client.round);
        const std::vector resources{client.resource};
        const auto owner = client.owner();
        client.round = std::make_unique<SharedRound>(
            group, names,
            Request{.command = {.verb = verb, .resources = resources, .owner = owner, .ttl = 60s}, .to = to},
            RoundLimits{}, std::move(end));
        loop.begin(*client.round);
    }

    void acquire(Client& client) {
        ++client.attempts;
        ++under_way;
        begin(client, Verb::set_if_absent, NodeSet{}.set(), [this, &client] { on_acquired(client); });
    }

    void on_acquired(Client& client) {
        const auto& tally = client.round->tally();
        client.sent = tally.sent();
        if (client.is_refused()) {
            EXPECT_EQ(tally.granted(), 0u) << client.owner();
            EXPECT_GE(tally.refused(), 1u) << client.owner();
            return release(client);
        }
        EXPECT_EQ(tally.refused(), 0u) << client.owner();
        EXPECT_GE(tally.granted(), quorum(cluster.size())) << causes(tally);
        if (client.attempts % 4 != 0) return release(client);
        begin(client, Verb::query, NodeSet{}.set(), [this, &client] { on_queried(client); });
    }

    /// D1: the answer is about the own resource.
    void on_queried(Client& client) {
        std::size_t own = 0;
        for (const auto& report : client.round->tally().reports()) {
            if (report.vote != Vote::granted || report.detail.find('/') == std::string::npos) continue;
            EXPECT_NE(report.detail.find(client.owner()), std::string::npos) << report.detail;
            ++own;
        }
        EXPECT_GE(own, quorum(cluster.size())) << client.owner();
        release(client);
    }

    void release(Client& client) {
        begin(client, Verb::compare_and_delete, client.sent, [this, &client] {
            --under_way;
            ++done;
            if (!stops) acquire(client);
        });
    }

    static std::string causes(const Tally& tally) {
        std::string text;
        for (const auto& report : tally.reports())
            text += std::to_string(static_cast<int>(report.vote)) + " " + report.cause.message() + " " +
                    report.detail + "; ";
        return text;
    }

    void turn() {
        loop.turn(
            [this](auto entries, auto until) {
                std::vector<pollfd> fds;
                for (const auto& entry : entries)
                    fds.push_back({.fd = entry.fd,
                                   .events = static_cast<short>((entry.reads ? POLLIN : 0) |
                                                                (entry.writes ? POLLOUT : 0)),
                                   .revents = 0});
                const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now());
                ::poll(fds.data(), static_cast<nfds_t>(fds.size()),
                       static_cast<int>(std::clamp<std::chrono::milliseconds>(left, 0ms, 100ms).count()));
                for (std::size_t i = 0; i < fds.size(); ++i) entries[i].ready = fds[i].revents != 0;
            },
            clock.now() + 100ms);
    }

    /// Makes turns until so many further operations are done. Fails after 30 s.
    void run(std::size_t operations) {
        const auto end = clock.now() + 30s;
        const auto enough = done + operations;
        while (done < enough && clock.now() < end) turn();
        EXPECT_GE(done, enough);
    }
    void run_for(Clock::duration span) {
        for (const auto end = clock.now() + span; clock.now() < end;) turn();
    }

    std::size_t keys() {
        std::size_t result = 0;
        for (const auto& server : cluster) result += std::stoul(server.command({"DBSIZE"}));
        return result;
    }

    support::Cluster cluster{};
    OsNetwork network{};
    Clock& clock = network.clock();
    Tally::Names names = std::make_shared<const std::vector<std::string>>(cluster.uris());
    NodeGroup group{configs(), {.node_timeout = node_timeout, .round = Round::all_at_once}, network};
    support::RoundLoop loop{group, clock};
    std::vector<Client> all{};
    std::size_t under_way = 0;
    std::size_t done = 0;
    bool stops = false;
};

// D1, B1, B5. Scripts are forgotten, a server is frozen and thawed, and connections are killed. No
// acquisition fails without a cause, and no key stays.
TEST_F(ManyRounds, AreServedWhateverHappensToAMinority) {
    for (auto& client : all) acquire(client);
    run(3 * clients);
    for (const auto& server : cluster) server.command({"SCRIPT", "FLUSH"});
    run(3 * clients);
    cluster[1].freeze();
    run_for(2 * node_timeout);
    run(2 * clients);
    cluster[1].thaw();
    run_for(2s);  // until it is probed
    cluster[3].command({"CLIENT", "KILL", "TYPE", "normal"});
    run(3 * clients);
    run_for(2s);
    cluster[0].command({"SCRIPT", "FLUSH"});
    cluster[4].freeze();
    run_for(20ms);
    cluster[4].thaw();
    run(2 * clients);
    stops = true;
    for (const auto end = clock.now() + 30s; under_way > 0 && clock.now() < end;) turn();
    EXPECT_EQ(under_way, 0u);
    const auto held = (clients + 7) / 8 * cluster.size();
    for (const auto end = clock.now() + 10s; keys() > held && clock.now() < end;) turn();
    EXPECT_EQ(keys(), held);
}

TEST_F(ManyRounds, UseOneConnectionToEachServer) {
    for (auto& client : all) acquire(client);
    run(2 * clients);
    for (auto& server : cluster) {
        const auto list = server.command({"CLIENT", "LIST", "TYPE", "normal"});
        EXPECT_EQ(std::ranges::count(list, '\n'), 2) << list;  // and the one of this question
    }
    stops = true;
    for (const auto end = clock.now() + 30s; under_way > 0 && clock.now() < end;) turn();
}

}  // namespace
}  // namespace redlock::test
