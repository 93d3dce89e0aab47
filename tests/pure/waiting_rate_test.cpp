// How many attempts a thousand waiters make together that nobody wakes. Each of them is the production code
// over nodes that only answer its questions, in virtual time; the waiters differ in their places and in their
// random numbers.
#include "memory_network.hpp"
#include "seeded_entropy.hpp"

#include "flow/place_in_queue.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace redlock::test::waiting_rate_test {
namespace {

using Held = QueuePlace::Held;

/// Hears nothing.
class DeafWaiter final : public Waiter {
public:
    explicit DeafWaiter(Clock& clock) : clock_(clock) {}
    bool listen(NodeSet, const RoundLimits&) override { return true; }
    std::size_t home() const noexcept override { return 0; }
    std::string new_ticket() override { return "redlock:wake:channel|1"; }
    WakeUp sleep(Clock::time_point until, const std::stop_token& stop) override {
        clock_.sleep_until(until, stop);
        return {true};
    }
    void disconnect(std::error_code, std::string_view) override {}
    void report_refusals(Tally&) const override {}

private:
    Clock& clock_;
};

/// Nodes whose home says the same to each question.
class ConstantNodes final : public Nodes {
public:
    ConstantNodes(Clock& clock, QueuePlace place) : Nodes({"a", "b", "c"}), clock_(clock), place_(place) {}
    using Nodes::ask;
    void ask(std::span<const Request> requests, const RoundLimits&, std::span<Tally> tallies) override {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            tallies[i].refuse(0);
            tallies[i][0].place = place_;
        }
    }
    std::unique_ptr<Waiter> waiter() override { return std::make_unique<DeafWaiter>(clock_); }

private:
    Clock& clock_;
    QueuePlace place_;
};

/// When a waiter at this place makes attempts, all of which are refused, within two minutes.
std::vector<Clock::duration> attempts_at(std::size_t in_front, Held held) {
    ManualClock clock;
    SeededEntropy entropy{1 + in_front};
    const auto held_for = held == Held::by_nobody ? -2ms : 60'000ms;
    ConstantNodes nodes{clock, {.held = held, .held_for = held_for, .in_front = in_front}};
    const std::vector<std::string> resource{"r"};
    const auto start = clock.now();
    const auto end = start + 2min;
    flow::BlockingOperation operation{nodes};
    flow::PlaceInQueue place{operation, clock, entropy, resource, 200ms, Clock::never(), {}};
    std::vector<Clock::duration> attempts;
    for (;;) {
        (void)flow::run_blocking(operation, place.wait(end));
        if (place.wake() != flow::PlaceInQueue::Wake::attempt) return attempts;
        attempts.push_back(clock.now() - start);
        auto tally = nodes.blank_tally();
        for (std::size_t node = 0; node < nodes.size(); ++node) tally.refuse(node);
        place.attempted(Errc::held_by_other, tally, 1ms);
    }
}

/// The most instants that any second has.
std::size_t most_in_a_second(std::vector<Clock::duration> instants) {
    std::ranges::sort(instants);
    std::size_t most = 0;
    for (auto first = instants.begin(), last = first; last != instants.end(); ++last) {
        while (*last - *first >= 1s) ++first;
        most = std::max(most, static_cast<std::size_t>(last - first) + 1);
    }
    return most;
}

struct WaitingRate : testing::TestWithParam<Held> {
    /// Of a thousand waiters that have all begun at the same instant.
    std::vector<Clock::duration> all_attempts(std::size_t first) const {
        std::vector<Clock::duration> all;
        for (std::size_t in_front = first; in_front < 1000; ++in_front) {
            const auto its_own = attempts_at(in_front, GetParam());
            all.insert(all.end(), its_own.begin(), its_own.end());
        }
        return all;
    }
};

TEST_P(WaitingRate, IsAtMostTwoHundredAttemptsASecondForAThousandWaiters) {
    EXPECT_LE(most_in_a_second(all_attempts(0)), 200U);
}

TEST_P(WaitingRate, IsAnAttemptOfEachWaiterInFifteenSeconds) {
    for (const std::size_t in_front : {0U, 1U, 7U, 60U, 999U, 1'000'000U}) {
        Clock::duration last{};
        const auto attempts = attempts_at(in_front, GetParam());
        ASSERT_GE(attempts.size(), 120U / 15U) << in_front;
        for (const auto attempt : attempts) {
            EXPECT_LE(attempt - last, 15s) << in_front;
            last = attempt;
        }
    }
}

TEST_P(WaitingRate, IsFourASecondForTheFirstWaiterUnlessAnotherIsWoken) {
    const auto attempts = attempts_at(0, GetParam());
    if (GetParam() == Held::by_waiter) {
        EXPECT_LE(attempts.size(), 120U / 7U + 1U);
    } else {
        EXPECT_GE(attempts.size(), 120U * 2U);
        EXPECT_LE(most_in_a_second(attempts), 5U);
    }
}

TEST_P(WaitingRate, HasARandomPart) {
    std::vector<Clock::duration> first;
    for (std::size_t in_front = 900; in_front < 1000; ++in_front) {
        const auto attempts = attempts_at(in_front, Held::by_holder);
        first.push_back(attempts.front());
    }
    std::ranges::sort(first);
    EXPECT_THAT(first.front(), IsBetween(7s, 9s));
    EXPECT_GE(first.back(), 13s);
}

std::string name_of(const testing::TestParamInfo<Held>& held) {
    const std::vector<std::string> names{"WithoutAKey", "WithAReservation", "WithAHolder"};
    return names.at(static_cast<std::size_t>(held.param));
}
INSTANTIATE_TEST_SUITE_P(AtAHome, WaitingRate,
                         testing::Values(Held::by_holder, Held::by_waiter, Held::by_nobody), name_of);

}  // namespace
}  // namespace redlock::test::waiting_rate_test
