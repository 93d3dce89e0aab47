// This library and other clients lock the same resources: node-redlock on all nodes, and redis-py, which
// knows one node only, on the first. run.sh runs these tests on the servers in REDLOCK_NODES.
//
// Each client is a separate program that executes commands line by line:
//
//     acquire RESOURCE TTL          held, or taken: one attempt
//     extend TTL                    held, or lost
//     release                       released, or lost
//     contend DIRECTORY RESOURCE MILLISECONDS
//                                   N holds M overlaps
//
// While it contends, a client acquires and releases repeatedly. In between it creates and removes the file
// DIRECTORY/held. If the file already exists, that is an overlap. Any other reply is an error. The first line
// of a client is "ready".
#include "support/line_process.hpp"
#include "support/redis_cluster_servers.hpp"
#include "support/redlock_nodes.hpp"
#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace redlock::interop::interop_test {
namespace {

using namespace std::chrono_literals;
using support::TemporaryDirectory;

/// The kinds of clients.
enum class Make { ours, ours_fair, ours_shared, ours_semaphore, node_redlock, redis_py };

std::string name_of(Make make) {
    switch (make) {
        case Make::ours: return "Ours";
        case Make::ours_fair: return "OursFair";
        case Make::ours_shared: return "OursShared";
        case Make::ours_semaphore: return "OursSemaphore";
        case Make::node_redlock: return "NodeRedlock";
        case Make::redis_py: return "RedisPy";
    }
    return {};
}

std::vector<std::string> program_of(Make make, const std::vector<std::string>& uris) {
    const std::string here = REDLOCK_INTEROP_DIRECTORY;
    std::vector<std::string> words{REDLOCK_INTEROP_OURS};
    if (make == Make::ours_fair) words.emplace_back("--fair");
    if (make == Make::ours_shared) words.emplace_back("--shared");
    if (make == Make::ours_semaphore) words.emplace_back("--semaphore");
    if (make == Make::node_redlock) words = {"node", here + "/node_redlock.js"};
    if (make == Make::redis_py) words = {std::getenv("REDLOCK_INTEROP_PYTHON"), here + "/redis_py.py"};
    words.insert(words.end(), uris.begin(), uris.end());
    return words;
}

/// Returns a resource that no other test has locked.
std::string fresh_resource() {
    static int made = 0;
    return "orders:" + std::to_string(++made);
}

struct Field {
    std::size_t nodes;
    std::vector<Make> makes;
};
const Field five_nodes{5, {Make::ours, Make::node_redlock}};
const Field one_node{1, {Make::ours, Make::node_redlock, Make::redis_py}};

class Client {
public:
    Client(Make make, const std::vector<std::string>& uris)
        : name_(name_of(make)), process_(program_of(make, uris)) {
        EXPECT_EQ(answer(), "ready") << name_;
    }

    const std::string& name() const noexcept { return name_; }
    void tell(const std::string& line) { process_.write_line(line); }
    std::string answer() { return process_.read_line(2min).value_or(name_ + " does not answer"); }
    std::string ask(const std::string& line) {
        tell(line);
        return answer();
    }

private:
    std::string name_;
    support::LineProcess process_;
};

std::deque<Client> start(const std::vector<std::string>& uris, const std::vector<Make>& makes) {
    std::deque<Client> clients;
    for (const auto make : makes) clients.emplace_back(make, uris);
    return clients;
}

/// Returns the addresses of the first `nodes` nodes.
std::vector<std::string> first_nodes(std::size_t nodes) {
    auto uris = support::redlock_nodes();
    uris.resize(nodes);
    return uris;
}

// ---- Two clients, one after the other.

struct Pair {
    std::size_t nodes;
    Make one;
    Make other;
};

void PrintTo(const Pair& pair, std::ostream* out) {
    *out << name_of(pair.one) << " and " << name_of(pair.other) << ", nodes: " << pair.nodes;
}

/// Returns each client with our locks, and with our readers, in both orders.
std::vector<Pair> pairs() {
    std::vector<Pair> pairs;
    for (const auto& field : {five_nodes, one_node})
        for (const auto ours : {Make::ours, Make::ours_shared})
            for (const auto other : field.makes)
                if (ours != other) {
                    pairs.push_back({field.nodes, ours, other});
                    pairs.push_back({field.nodes, other, ours});
                }
    return pairs;
}

class TwoClientLibraries : public testing::TestWithParam<Pair> {
protected:
    std::string one(const std::string& line) { return clients_[0].ask(line); }
    std::string other(const std::string& line) { return clients_[1].ask(line); }

    const std::string resource = fresh_resource();

private:
    std::deque<Client> clients_ = start(first_nodes(GetParam().nodes), {GetParam().one, GetParam().other});
};

std::string name_of(const Pair& pair) {
    return name_of(pair.one) + "And" + name_of(pair.other) + (pair.nodes == 1 ? "OnOneNode" : "OnFiveNodes");
}

INSTANTIATE_TEST_SUITE_P(Interop, TwoClientLibraries, testing::ValuesIn(pairs()),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(TwoClientLibraries, SeeEachOthersLocks) {
    EXPECT_EQ(one("acquire " + resource + " 30000"), "held");
    EXPECT_EQ(other("acquire " + resource + " 30000"), "taken");
    EXPECT_EQ(one("extend 30000"), "held") << "the attempt of the other has done no harm";
    EXPECT_EQ(one("release"), "released");
    EXPECT_EQ(other("acquire " + resource + " 30000"), "held");
    EXPECT_EQ(other("release"), "released");
}

TEST_P(TwoClientLibraries, DoNotTouchEachOthersLocksAfterTheirOwnHaveLapsed) {
    EXPECT_EQ(one("acquire " + resource + " 1000"), "held");
    std::this_thread::sleep_for(1100ms);
    EXPECT_EQ(other("acquire " + resource + " 30000"), "held");
    EXPECT_EQ(one("extend 60000"), "lost");
    EXPECT_EQ(one("release"), "lost");
    EXPECT_EQ(other("extend 30000"), "held") << "the late release and extension did not touch the other lock";
    EXPECT_EQ(one("acquire " + resource + " 30000"), "taken");
    EXPECT_EQ(other("release"), "released");
}

// ---- All at the same time.

class AContest : public testing::TestWithParam<Field> {};
INSTANTIATE_TEST_SUITE_P(Interop, AContest, testing::Values(five_nodes, one_node), [](const auto& test) {
    return std::string{test.param.nodes == 1 ? "OnOneNode" : "OnFiveNodes"};
});

void PrintTo(const Field& field, std::ostream* out) {
    *out << field.nodes << " nodes";
}

/// Each hold creates a file that must not exist yet.
void expect_one_holder_at_a_time_and_a_share_for_each(const std::vector<std::string>& uris,
                                                      const std::vector<Make>& makes,
                                                      std::chrono::milliseconds span,
                                                      const std::string& resource = fresh_resource()) {
    auto clients = start(uris, makes);
    const TemporaryDirectory directory;
    for (auto& client : clients)
        client.tell("contend " + directory.path().string() + " " + resource + " " +
                    std::to_string(span.count()));
    for (auto& client : clients) {
        const auto line = client.answer();
        std::cout << client.name() << ": " << line << '\n';
        int holds = 0;
        int overlaps = -1;
        std::string words;
        std::istringstream{line} >> holds >> words >> overlaps;
        EXPECT_GT(holds, 0) << client.name();
        EXPECT_EQ(overlaps, 0) << client.name();
    }
}

// Two clients of each kind.
TEST_P(AContest, HasOneHolderAtATimeAndEachGetsItsShare) {
    auto makes = GetParam().makes;
    makes.insert(makes.end(), GetParam().makes.begin(), GetParam().makes.end());
    expect_one_holder_at_a_time_and_a_share_for_each(first_nodes(GetParam().nodes), makes, 2s);
}

// Readers may hold the lock together. None of them may hold it together with any other client.
TEST_P(AContest, LetsReadersHoldTogetherButWithNoOtherClient) {
    auto makes = GetParam().makes;
    makes.insert(makes.end(), 3, Make::ours_shared);
    expect_one_holder_at_a_time_and_a_share_for_each(first_nodes(GetParam().nodes), makes, 4s);
}

// The slot of a semaphore is an ordinary lock.
TEST_P(AContest, HasOneHolderOfASlotAtATime) {
    auto makes = GetParam().makes;
    makes.insert(makes.end(), 2, Make::ours_semaphore);
    expect_one_holder_at_a_time_and_a_share_for_each(first_nodes(GetParam().nodes), makes, 2s,
                                                     "{" + fresh_resource() + "}:slot:0");
}

// Three clients wait in the queue, and the others do not know of a queue. Each waiter waits at most as long
// as it requested, and does not exclude the others.
TEST_P(AContest, HasOneHolderAtATimeIfSomeClientsWaitInAQueue) {
    auto makes = GetParam().makes;
    makes.insert(makes.end(), 3, Make::ours_fair);
    expect_one_holder_at_a_time_and_a_share_for_each(first_nodes(GetParam().nodes), makes, 4s);
}

// ---- A node that is a Redis Cluster, with ioredis.Cluster and redis-py's RedisCluster.

class OnARedisCluster : public testing::Test {
protected:
    support::RedisClusterServers servers{};
    const std::vector<std::string> uris{servers.uri()};
};

TEST_F(OnARedisCluster, TheClientsSeeEachOthersLocksOnAllServers) {
    auto clients = start(uris, {Make::ours, Make::node_redlock, Make::redis_py});
    for (const std::string resource : {"a", "b", "c"}) {  // in the slots 15495, 3300 and 7365
        for (auto& holder : clients) {
            EXPECT_EQ(holder.ask("acquire " + resource + " 30000"), "held") << holder.name();
            for (auto& other : clients)
                if (&other != &holder) {
                    EXPECT_EQ(other.ask("acquire " + resource + " 30000"), "taken") << other.name();
                }
            EXPECT_EQ(holder.ask("release"), "released") << holder.name();
        }
    }
}

TEST_F(OnARedisCluster, ThereIsOneHolderAtATimeAndEachGetsItsShare) {
    const auto makes = {Make::ours, Make::node_redlock, Make::redis_py, Make::ours};
    expect_one_holder_at_a_time_and_a_share_for_each(uris, makes, 3s);
}

}  // namespace
}  // namespace redlock::interop::interop_test
