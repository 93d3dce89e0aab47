// Many are after one resource: their pauses differ (rule A8), and everybody gets it within a bounded time,
// also with a node down (S3).
#include <redlock/redlock.hpp>

#include "process_state.hpp"
#include "team.hpp"

#include "support/cluster.hpp"
#include "support/wait_until.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace redlock::exclusion {
namespace {

using namespace std::chrono_literals;
using support::ChildProcess;
using support::Cluster;
using support::RedisServer;
using support::wait_until;
using testing::AllOf;
using testing::Each;
using testing::Gt;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;

/// The pauses of one process between its attempts.
using Pauses = std::vector<std::chrono::nanoseconds>;

constexpr int attempts = 5;
constexpr auto delay = 200ms;

/// Of so many processes that were started together, with so many children each.
std::vector<Pauses> pauses_of(std::size_t processes, int children, const RedisServer& server) {
    const support::TemporaryDirectory directory;
    Board board{directory / "board"};
    std::deque<ChildProcess> running;
    for (std::size_t process = 0; process < processes; ++process)
        running.emplace_back(support::Program{
            .words = {REDLOCK_EXCLUSION_PAUSES, directory / "board", std::to_string(attempts),
                      std::to_string(delay.count()), std::to_string(children), server.uri()},
            .output = directory / "output"});
    EXPECT_TRUE(wait_until([&] { return board.ready() == static_cast<std::int32_t>(processes); }, 30s));
    board.start();
    for (auto& process : running) EXPECT_EQ(process.wait(), 0);

    std::vector<Pauses> result;
    std::ifstream output{directory / "output"};
    for (std::string line; std::getline(output, line);) {
        result.emplace_back();
        std::istringstream numbers{line};
        for (std::int64_t pause = 0; numbers >> pause;) result.back().emplace_back(pause);
    }
    return result;
}

void expect_to_differ(const std::vector<Pauses>& all) {
    EXPECT_THAT(all, Each(SizeIs(attempts - 1))) << "none after the last attempt";
    // From the instant it was drawn for to the instant it began, a little of it is over.
    EXPECT_THAT(all, Each(Each(AllOf(Gt(delay / 2 - 20ms), Le(delay)))));
    std::set<Pauses> different(all.begin(), all.end());
    EXPECT_THAT(different, SizeIs(all.size()));
    std::set<std::chrono::nanoseconds> first;
    for (const auto& pauses : all) first.insert(pauses.at(0));
    EXPECT_THAT(first, SizeIs(all.size())) << "they would all come back at once";
}

// A8, S20
TEST(Pauses, OfEightProcessesStartedTogetherDiffer) {
    const RedisServer server;
    ASSERT_EQ(server.command({"SET", "resource", "another"}), "OK");
    const auto all = pauses_of(8, 0, server);
    ASSERT_THAT(all, SizeIs(8));
    expect_to_differ(all);
}

// A6, A8: a forking server's children share whatever state their parent had.
TEST(Pauses, OfEightChildrenForkedByOneProcessDiffer) {
    const RedisServer server;
    ASSERT_EQ(server.command({"SET", "resource", "another"}), "OK");
    const auto all = pauses_of(1, 8, server);
    ASSERT_THAT(all, SizeIs(8));
    expect_to_differ(all);
}

class Contention : public testing::TestWithParam<Round> {
protected:
    /// Every one of the workers gets the lock so many times, and none waits for it without end.
    void expect_everybody_to_get_it(Cluster& servers, std::size_t workers, int holds) {
        Team team{{.round = GetParam(), .holds = holds},
                  std::vector<std::vector<std::string>>(workers, servers.uris())};
        team.start();
        EXPECT_EQ(team.wait(80s), workers) << team.output();
        for (std::size_t worker = 0; worker < workers; ++worker) {
            EXPECT_EQ(team.diary(worker).holds(), holds);
            EXPECT_THAT(std::chrono::nanoseconds{team.diary(worker).longest_wait()}, Le(40s));
        }
        EXPECT_THAT(overlaps(team.history()), IsEmpty());
    }
};

std::string name_of(const testing::TestParamInfo<Round>& round) {
    return round.param == Round::sequential ? "InTurn" : "AllAtOnce";
}

INSTANTIATE_TEST_SUITE_P(Asking, Contention, testing::Values(Round::sequential, Round::all_at_once), name_of);

// S21, S22
TEST_P(Contention, OfFiveProcessesLetsEverybodyHaveItTwentyTimes) {
    Cluster servers;
    expect_everybody_to_get_it(servers, 5, 20);
}

// S3, A3: who lacks one vote must not sit on the others while it waits for a node that does not answer.
TEST_P(Contention, OfEightProcessesWithAFrozenNodeAmongThreeLetsEverybodyHaveIt) {
    Cluster servers{3};
    servers[1].freeze();
    expect_everybody_to_get_it(servers, 8, 10);
}

TEST_P(Contention, OfEightProcessesWithADeadNodeAmongThreeLetsEverybodyHaveIt) {
    Cluster servers{3};
    servers[1].kill();
    expect_everybody_to_get_it(servers, 8, 10);
}

// S3, A3: a majority is up as soon as the dead node is back, and what is needed is asked.
TEST_P(Contention, FindsANodeThatCameBackAtOnceWhereAnotherIsFrozen) {
    Cluster servers{3};
    RedisNodes nodes{servers.uris(), {.node_timeout = 200ms, .round = GetParam()}};
    Lock lock{nodes, "resource", {.ttl = 10s, .retry = {.delay = 10ms}}};
    servers[2].kill();
    int failures = 0;
    EXPECT_TRUE(wait_until(
        [&] {  // until it is left alone for about a second after each
            const auto result = lock.acquire_for(10s);
            failures += result.nodes()[2].cause == Errc::connection_failed ? 1 : 0;
            return lock.release() && failures >= 8;
        },
        30s));
    servers[0].freeze();
    EXPECT_FALSE(lock.try_acquire());
    EXPECT_FALSE(lock.try_acquire());
    servers[2].restart();
    EXPECT_TRUE(lock.try_acquire() || lock.try_acquire());
    servers[0].thaw();
}

// S3: lock() waits while others hold it; that a node is down must not make it give up.
TEST_P(Contention, MakesLockWaitForTheHolderAlsoWithANodeDown) {
    Cluster servers{5};
    RedisNodes nodes{servers.uris(), {.round = GetParam()}};
    for (std::size_t node : {1U, 2U, 3U}) servers[node].command({"SET", "resource", "another"});
    servers[0].kill();
    std::string error;
    {
        const std::jthread waiting{[&] {
            try {
                Lock lock{nodes, "resource", {.ttl = 10min, .retry = {.attempts = 3, .delay = 5ms}}};
                lock.lock();
            } catch (const std::exception& thrown) {
                error = thrown.what();
            }
        }};
        const auto before = calls(servers[1], "set");
        (void)wait_until([&] { return calls(servers[1], "set") >= before + 20; }, 5s);
        for (std::size_t node : {1U, 2U, 3U}) servers[node].command({"DEL", "resource"});
    }
    EXPECT_THAT(error, IsEmpty());
}

}  // namespace
}  // namespace redlock::exclusion
