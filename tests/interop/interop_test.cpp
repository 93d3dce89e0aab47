// This library and clients of other makes lock the same resources: node-redlock on all nodes, redis-py, which
// knows one node only, on the first. Run by run.sh, on the servers that REDLOCK_NODES names.
#include "client.hpp"

#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace redlock::interop {
namespace {

using namespace std::chrono_literals;
using support::TemporaryDirectory;

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    if (value == nullptr)
        throw std::runtime_error(std::string{name} + " is not set: sh tests/interop/run.sh");
    return value;
}

/// Makes of clients.
enum class Make { ours, node_redlock, redis_py };

std::string name_of(Make make) {
    switch (make) {
        case Make::ours: return "Ours";
        case Make::node_redlock: return "NodeRedlock";
        case Make::redis_py: return "RedisPy";
    }
    return {};
}

std::vector<std::string> program_of(Make make) {
    const std::string here = REDLOCK_INTEROP_DIRECTORY;
    switch (make) {
        case Make::ours: return {REDLOCK_INTEROP_OURS};
        case Make::node_redlock: return {"node", here + "/node_redlock.js"};
        case Make::redis_py: return {variable("REDLOCK_INTEROP_PYTHON"), here + "/redis_py.py"};
    }
    return {};
}

/// The servers; of them the first `count`.
std::vector<std::string> servers(std::size_t count) {
    std::istringstream list{variable("REDLOCK_NODES")};
    std::vector<std::string> uris;
    for (std::string uri; uris.size() < count && std::getline(list, uri, ',');) uris.push_back(uri);
    EXPECT_EQ(uris.size(), count);
    return uris;
}

/// A resource that no other test has locked.
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

class Clients {
public:
    Clients(std::size_t nodes, const std::vector<Make>& makes) {
        const auto uris = servers(nodes);
        for (const auto make : makes) {
            auto words = program_of(make);
            words.insert(words.end(), uris.begin(), uris.end());
            clients_.emplace_back(name_of(make), words);
        }
    }

    Client& operator[](std::size_t number) { return clients_.at(number); }
    auto begin() { return clients_.begin(); }
    auto end() { return clients_.end(); }

private:
    std::deque<Client> clients_{};
};

// ---- Two clients, one after the other.

struct Pair {
    std::size_t nodes;
    Make one;
    Make other;
};

void PrintTo(const Pair& pair, std::ostream* out) {
    *out << name_of(pair.one) << " and " << name_of(pair.other) << ", nodes: " << pair.nodes;
}

/// Each with each other, both ways round.
std::vector<Pair> pairs() {
    std::vector<Pair> pairs;
    for (const auto& field : {five_nodes, one_node})
        for (const auto one : field.makes)
            for (const auto other : field.makes)
                if (one != other && (one == Make::ours || other == Make::ours))
                    pairs.push_back({field.nodes, one, other});
    return pairs;
}

class TwoMakes : public testing::TestWithParam<Pair> {
protected:
    std::string one(const std::string& line) { return clients_[0].ask(line); }
    std::string other(const std::string& line) { return clients_[1].ask(line); }

    const std::string resource = fresh_resource();

private:
    Clients clients_{GetParam().nodes, {GetParam().one, GetParam().other}};
};

std::string name_of(const Pair& pair) {
    return name_of(pair.one) + "And" + name_of(pair.other) + (pair.nodes == 1 ? "OnOneNode" : "OnFiveNodes");
}

INSTANTIATE_TEST_SUITE_P(Interop, TwoMakes, testing::ValuesIn(pairs()),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(TwoMakes, SeeEachOthersLocks) {
    EXPECT_EQ(one("acquire " + resource + " 30000"), "held");
    EXPECT_EQ(other("acquire " + resource + " 30000"), "taken");
    EXPECT_EQ(one("extend 30000"), "held") << "the attempt of the other has done no harm";
    EXPECT_EQ(one("release"), "released");
    EXPECT_EQ(other("acquire " + resource + " 30000"), "held");
    EXPECT_EQ(other("release"), "released");
}

TEST_P(TwoMakes, LeaveEachOthersLocksAloneWhenTheirOwnHaveLapsed) {
    EXPECT_EQ(one("acquire " + resource + " 1000"), "held");
    std::this_thread::sleep_for(1100ms);
    EXPECT_EQ(other("acquire " + resource + " 30000"), "held");
    EXPECT_EQ(one("extend 60000"), "lost");
    EXPECT_EQ(one("release"), "lost");
    EXPECT_EQ(other("extend 30000"), "held") << "what was released and extended too late is not theirs";
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

// Two of each make. Every hold is witnessed by a file that must not be there yet.
TEST_P(AContest, HasOneHolderAtATimeAndEachGetsItsShare) {
    auto makes = GetParam().makes;
    makes.insert(makes.end(), GetParam().makes.begin(), GetParam().makes.end());
    Clients clients{GetParam().nodes, makes};
    const TemporaryDirectory directory;
    const auto resource = fresh_resource();
    for (auto& client : clients)
        client.tell("contend " + directory.path().string() + " " + resource + " 2000");
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

}  // namespace
}  // namespace redlock::interop
