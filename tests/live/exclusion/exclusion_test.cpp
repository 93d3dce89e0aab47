// Mutual exclusion, seen from outside: eight processes, three nodes that crash, come back with their data and
// freeze, workers that are killed while they hold, and an overlap of holds that must be zero (S1, S2, S3).
#include "nemesis.hpp"
#include "team.hpp"

#include "support/wait_until.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace redlock::exclusion {
namespace {

using namespace std::chrono_literals;
using support::Cluster;
using support::RedisConfig;
using support::wait_until;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t workers = 8;
constexpr std::int64_t least_holds = 100;

void expect_exclusion_under_a_nemesis(Round round) {
    const auto seed = std::random_device{}();
    Cluster nodes{3, RedisConfig{}.keeps_data()};
    Team team{{.round = round, .ttl = 300ms, .overstays = true},
              std::vector<std::vector<std::string>>(workers, nodes.uris())};
    Nemesis nemesis{nodes, team, seed};
    team.start();
    const auto end = std::chrono::steady_clock::now() + 8s;
    while (std::chrono::steady_clock::now() < end && !nemesis.stalled()) nemesis.strike();
    const auto everybody_held = [&] {
        bool each = true;
        for (std::size_t worker = 0; worker < workers; ++worker) each &= team.diary(worker).holds() > 0;
        return each && team.holds() >= least_holds;
    };
    const bool progress = wait_until(everybody_held, 30s);
    const auto well = team.stop();

    const testing::ScopedTrace trace{__FILE__, __LINE__,
                                     "seed " + std::to_string(seed) + "\n" + nemesis.deeds()};
    EXPECT_FALSE(nemesis.stalled());
    EXPECT_TRUE(progress) << team.holds() << " holds in " << team.attempts() << " attempts";
    EXPECT_EQ(well, workers) << team.output();
    EXPECT_THAT(team.output(), IsEmpty());
    const auto found = overlaps(team.history());
    EXPECT_THAT(found, IsEmpty()) << text(found);
    testing::Test::RecordProperty("holds", std::to_string(team.holds()));
    testing::Test::RecordProperty("attempts", std::to_string(team.attempts()));
}

// S1, S3, S28: with AOF always, a crash forgets no lock.
TEST(Exclusion, EightProcessesNeverHoldAtOnceWhileNodesCrashAndFreezeAskingInTurn) {
    expect_exclusion_under_a_nemesis(Round::sequential);
}

TEST(Exclusion, EightProcessesNeverHoldAtOnceWhileNodesCrashAndFreezeAskingAllAtOnce) {
    expect_exclusion_under_a_nemesis(Round::all_at_once);
}

// The check can fail. Two halves that share no node form quorums that do not intersect.
TEST(Exclusion, IsBrokenVisiblyWhereQuorumsDoNotIntersect) {
    Cluster nodes{2};
    std::vector<std::vector<std::string>> halves;
    for (std::size_t worker = 0; worker < workers; ++worker) halves.push_back({nodes[worker % 2].uri()});
    Team team{{.round = Round::sequential, .ttl = 400ms}, halves};
    team.start();
    const bool found = wait_until([&] { return !overlaps(team.history()).empty(); }, 30s);
    EXPECT_EQ(team.stop(), workers) << team.output();
    EXPECT_TRUE(found) << team.holds() << " holds without an overlap";
}

TEST(Overlaps, AreHoldsThatBeganBeforeAnEarlierOneHadEnded) {
    EXPECT_THAT(overlaps({}), IsEmpty());
    EXPECT_THAT(overlaps({{10, 20, 0}, {20, 30, 1}}), IsEmpty());
    EXPECT_THAT(overlaps({{20, 30, 1}, {10, 21, 0}}), SizeIs(1));
    EXPECT_THAT(overlaps({{10, 50, 0}, {20, 20, 1}}), SizeIs(1)) << "an instant within a hold";
    EXPECT_THAT(overlaps({{10, 50, 0}, {20, 30, 1}, {40, 60, 2}}), SizeIs(2)) << "both with the long one";
}

}  // namespace
}  // namespace redlock::exclusion
