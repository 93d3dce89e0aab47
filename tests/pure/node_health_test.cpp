// The circuit breaker of a node: its states, its pauses, and what counts as a failure.
#include "seeded_entropy.hpp"

#include <redlock/error.hpp>

#include <gmock/gmock.h>

#include <ostream>
#include <string>
#include <vector>

#include "round/node_health.hpp"

namespace redlock::detail::node_health_test {
namespace {

using namespace std::chrono_literals;
using State = NodeHealth::State;
using test::ConstantEntropy;

struct NodeHealthTest : testing::Test {
    std::optional<Clock::duration> fail(Errc cause = Errc::timed_out) {
        return health.failed({cause, "detail"}, now, entropy);
    }
    void begin_probe() { health.begin_probe(now, entropy); }

    NodeHealth health{};
    ConstantEntropy entropy{0xFF};  // gives the longest pauses
    Clock::time_point now{1h};
};

// ---- The table in the header, row by row.

/// The expected state after an event in a given state.
struct Transition {
    std::string state, event;
    State after;
    bool probe_due = false;
};

void PrintTo(const Transition& row, std::ostream* out) {
    *out << row.state << ", " << row.event;
}

struct NodeHealthTable : NodeHealthTest, testing::WithParamInterface<Transition> {
    void apply(const std::string& words) {
        if (words == "fails") fail();
        if (words == "probe begins") begin_probe();
        if (words == "succeeds") health.succeeded();
        if (words == "connects") health.connected();
        if (words == "replies late") health.replied_late();
        if (words == "needed") health.trust_late_replies();
        if (words == "looked at") health.update(now);
        if (words == "looked at after the pause") health.update(now += 2s);
        if (words == "pause passes") now += 2s;
    }
    void bring_to(const std::string& state) {
        if (state == "trusted") return;
        fail();
        if (state != "failed") apply(state == "probed" ? "probe begins" : "replies late");
        if (state == "probed and replied late") begin_probe();
    }
};

INSTANTIATE_TEST_SUITE_P(
    NodeHealth, NodeHealthTable,
    testing::Values(Transition{"trusted", "", State::trusted},              //
                    Transition{"trusted", "pause passes", State::trusted},  //
                    Transition{"trusted", "looked at after the pause", State::trusted},
                    Transition{"trusted", "needed", State::trusted},            //
                    Transition{"trusted", "replies late", State::trusted},      //
                    Transition{"trusted", "fails", State::failed},              //
                    Transition{"failed", "", State::failed},                    //
                    Transition{"failed", "pause passes", State::failed, true},  //
                    Transition{"failed", "looked at after the pause", State::failed, true},
                    Transition{"failed", "needed", State::failed},                      //
                    Transition{"failed", "probe begins", State::probed},                //
                    Transition{"failed", "succeeds", State::trusted},                   //
                    Transition{"failed", "connects", State::trusted},                   //
                    Transition{"failed", "fails", State::failed},                       //
                    Transition{"failed and replied late", "looked at", State::failed},  //
                    Transition{"failed and replied late", "looked at after the pause", State::trusted},
                    Transition{"failed and replied late", "needed", State::trusted},  //
                    Transition{"probed", "", State::probed},                          //
                    Transition{"probed", "pause passes", State::probed, true},        //
                    Transition{"probed", "needed", State::probed},                    //
                    Transition{"probed", "looked at after the pause", State::probed, true},
                    Transition{"probed", "fails", State::failed},      //
                    Transition{"probed", "succeeds", State::trusted},  //
                    Transition{"probed", "connects", State::trusted},  //
                    Transition{"probed and replied late", "looked at after the pause", State::trusted}));

TEST_P(NodeHealthTable, MatchesTheCode) {
    const auto& row = GetParam();
    bring_to(row.state);
    apply(row.event);
    EXPECT_EQ(health.state(), row.after);
    EXPECT_EQ(health.trusted(), row.after == State::trusted);
    EXPECT_EQ(health.probe_due(now), row.probe_due);
}

// ---- Pauses

std::vector<Clock::duration> pauses_of_failing_probes(Entropy& entropy, int count) {
    NodeHealth health;
    Clock::time_point now{1h};
    std::vector<Clock::duration> pauses;
    for (int i = 0; i < count; ++i) {
        const auto pause = health.failed({}, now, entropy);
        if (!pause) break;
        pauses.push_back(*pause);
        now += *pause;
        EXPECT_FALSE(health.probe_due(now - 1ns));
        EXPECT_TRUE(health.probe_due(now));
        health.begin_probe(now, entropy);
    }
    return pauses;
}

TEST(NodeHealth, DoublesItsPausesFromTenMillisecondsToASecond) {
    ConstantEntropy longest{0xFF};
    EXPECT_THAT(pauses_of_failing_probes(longest, 10),
                testing::ElementsAre(10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 640ms, 1s, 1s, 1s));
}

// Otherwise clients that met the same failure would probe at the same times.
TEST(NodeHealth, RandomizesHalfOfAPause) {
    ConstantEntropy shortest{0x00};
    EXPECT_THAT(pauses_of_failing_probes(shortest, 9),
                testing::ElementsAre(5ms, 10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms));
}

TEST_F(NodeHealthTest, PausesGrowUntilACommandIsAnsweredInTime) {
    EXPECT_EQ(fail(), 10ms);
    health.connected();
    EXPECT_EQ(fail(), 20ms) << "a node that takes connections, but no commands";
    health.replied_late();
    health.update(now += 1s);
    ASSERT_TRUE(health.trusted());
    EXPECT_EQ(fail(), 40ms) << "a node that is always late";
    health.succeeded();
    EXPECT_EQ(fail(), 10ms);
}

TEST_F(NodeHealthTest, AHangingProbeIsFollowedByAnotherAfterAPause) {
    fail();
    now += 10ms;
    begin_probe();
    EXPECT_FALSE(health.probe_due(now + 10ms - 1ns));
    EXPECT_TRUE(health.probe_due(now + 10ms));
}

// ---- Which failures count

TEST_F(NodeHealthTest, ConcurrentFailuresCountOnce) {
    EXPECT_EQ(fail(Errc::timed_out), 10ms);
    EXPECT_EQ(fail(Errc::connection_failed), std::nullopt);
    now += 9ms;
    EXPECT_EQ(fail(Errc::loading), std::nullopt);
    EXPECT_TRUE(health.probe_due(now + 1ms)) << "the pause is no longer";
    EXPECT_EQ(health.last_failure().cause, Errc::loading) << "the latest is reported";
    now += 1ms;
    EXPECT_EQ(fail(), 20ms);
}

TEST_F(NodeHealthTest, FailuresDuringOneProbeCountOnce) {
    fail();
    now += 10ms;
    begin_probe();
    EXPECT_EQ(fail(), 20ms);
    EXPECT_EQ(fail(), std::nullopt);
}

TEST_F(NodeHealthTest, AReplyBeforeTheLastFailureDoesNotCloseTheCircuit) {
    fail();
    health.replied_late();
    now += 10ms;
    fail();
    health.update(now + 1s);
    EXPECT_FALSE(health.trusted());
}

TEST_F(NodeHealthTest, TheCauseOfTheLastFailureIsKept) {
    fail(Errc::authentication_failed);
    health.connected();
    EXPECT_EQ(health.last_failure().cause, Errc::authentication_failed);
    EXPECT_EQ(health.last_failure().detail, "detail");
}

}  // namespace
}  // namespace redlock::detail::node_health_test
