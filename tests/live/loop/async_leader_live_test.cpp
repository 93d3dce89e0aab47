// AsyncLeader in a poll() loop, against real servers.
#include "poll_loop.hpp"
#include "support/cluster_test.hpp"

#include <redlock/async_leader.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace redlock::test {
namespace {

using namespace std::chrono_literals;

class ALeaderInALoop : public support::ClusterTest {
protected:
    static LeaderOptions options() { return {.ttl = 10min, .margin = 3s, .retry = {.delay = 20ms}}; }

    PollLoop loop{};
    AsyncNodes of_loop{nodes, loop};
};

TEST_F(ALeaderInALoop, LeadsInTurnWithOthers) {
    constexpr int candidates = 4;
    std::deque<AsyncLeader> leaders;
    std::deque<AsyncTerm> terms;
    std::uint64_t last_token = 0;
    int led = 0;
    int ended = 0;
    for (int i = 0; i < candidates; ++i)
        leaders.emplace_back(of_loop, "orders:42", options())
            .run(
                [&](AsyncTerm term) {
                    EXPECT_GT(term.fencing_token(), last_token);
                    EXPECT_TRUE(terms.empty()) << "two leaders at once";
                    EXPECT_FALSE(term.lost().stop_requested());
                    last_token = term.fencing_token();
                    ++led;
                    terms.push_back(std::move(term));
                },
                [&](const std::exception_ptr& error) {
                    EXPECT_FALSE(error);
                    ++ended;
                });
    while (led < 20 && loop.run_once())
        if (!terms.empty()) terms.pop_front();
    EXPECT_EQ(led, 20);
    for (auto& leader : leaders) leader.cancel();
    terms.clear();
    while (ended < candidates && loop.run_once()) {
    }
    EXPECT_EQ(ended, candidates);
    EXPECT_TRUE(no_key_is_left());
}

TEST_F(ALeaderInALoop, IsExtendedAndReportsItsLoss) {
    std::optional<Result> failure;
    auto its = options();
    its.ttl = 3s;
    its.margin = 500ms;
    its.on_failure = [&](const Result& it) { failure = it; };
    AsyncLeader leader{of_loop, "orders:42", its};
    std::optional<AsyncTerm> term;
    leader.run([&](AsyncTerm it) { term.emplace(std::move(it)); }, [](const std::exception_ptr&) {});
    while (!term && loop.run_once()) {
    }
    ASSERT_TRUE(term);
    const auto first_end = term->valid_until();
    while (term->valid_until() == first_end && loop.run_once()) {
    }
    EXPECT_GT(term->valid_until(), first_end);
    for (auto& server : cluster) server.command({"DEL", "orders:42"});
    while (!term->lost().stop_requested() && loop.run_once()) {
    }
    EXPECT_EQ(term->remaining(), 0s);
    term.reset();
    while (!term && loop.run_once()) {
    }
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->error(), Errc::lost);
    EXPECT_TRUE(term) << "it leads again";
}

}  // namespace
}  // namespace redlock::test
