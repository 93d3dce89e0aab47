// What the bench prints.
#include "tool/bench/bench_report.hpp"
#include "support/answering_node.hpp"
#include "tool/text/json.hpp"

#include <redlock/error.hpp>

#include <gmock/gmock.h>

#include <cstdint>
#include <sstream>
#include <thread>
#include <utility>

namespace redlock::tool::bench_report_test {
namespace {

using namespace std::chrono_literals;
using support::AnsweringNode;
using testing::HasSubstr;
using testing::Not;

TEST(Bars, HaveALogarithmicScaleFromTheFirstToTheLast) {
    LatencyHistogram histogram;
    for (const auto latency : {150us, 160us, 300us, 1500us}) histogram.record(latency);
    const auto bars = bars_of(histogram);
    ASSERT_EQ(bars.size(), 4U);  // 100 to 200 µs, 500 µs, 1 ms, 2 ms
    EXPECT_EQ(bars[0].from, 100us);
    EXPECT_EQ(bars[0].to, 200us);
    EXPECT_EQ(bars[0].count, 2U);
    EXPECT_EQ(bars[1].count, 1U);
    EXPECT_EQ(bars[2].count, 0U);
    EXPECT_EQ(bars[3].from, 1ms);
    EXPECT_EQ(bars[3].to, 2ms);
    EXPECT_EQ(bars[3].count, 1U);
}

TEST(Bars, EndInFrontOfTheFirstLatencyOfTheNextOne) {
    LatencyHistogram histogram;
    for (const auto latency : {0ns, 999ns, 1000ns}) histogram.record(latency);
    const auto bars = bars_of(histogram);
    ASSERT_EQ(bars.size(), 2U);
    EXPECT_EQ(bars[0].from, 0ns);
    EXPECT_EQ(bars[0].to, 1us);
    EXPECT_EQ(bars[0].count, 2U);
    EXPECT_EQ(bars[1].count, 1U);
}

TEST(Bars, AreEmptyWithoutMeasurements) {
    EXPECT_TRUE(bars_of({}).empty());
}

// All threads count in one measurement. An acquisition takes 2 ms at least, and a release may take less.
TEST(AMeasurement, HasTheAcquisitionsOfAllThreads) {
    AnsweringNode node{[&](const Command& command, Tally& tally) {
        if (acquires(command.verb)) std::this_thread::sleep_for(2ms);
        tally.grant(0);
    }};
    const Workload workload{.prefix = "a", .lock = {.ttl = 10s}, .threads = 4};
    std::uint64_t last = 0;
    const auto measured = Meter{}.run(node, workload, [&](std::uint64_t acquired) {
        last = acquired;
        return acquired < 100;
    });
    EXPECT_GE(last, 100U);
    EXPECT_GE(measured.acquire.count(), last);
    EXPECT_EQ(measured.acquire.count(), measured.release.count());
    EXPECT_LT(measured.release.counts().begin()->first, 2ms);
}

// The first acquisition has to connect.
TEST(AMeasurement, DoesNotCountTheFirstAcquisition) {
    bool is_first = true;
    AnsweringNode node{[&](const auto&, Tally& tally) {
        if (std::exchange(is_first, false)) return tally.mark_unknown(0, Errc::timed_out);
        tally.grant(0);
    }};
    const Workload workload{.prefix = "a", .lock = {.ttl = 10s, .retry = {.attempts = 1}}};
    const auto measured = Meter{}.run(node, workload, [](std::uint64_t acquired) { return acquired == 0; });
    EXPECT_GT(measured.acquire.count(), 0U);
    EXPECT_TRUE(measured.failures.empty());
}

TEST(BenchReport, HasPercentilesRateAndFailures) {
    Measurement measurement;
    for (int i = 0; i < 100; ++i) measurement.acquire.record(3ms);
    for (int i = 0; i < 100; ++i) measurement.release.record(1ms);
    measurement.took = 2s;
    measurement.failures[{"acquire", Errc::no_quorum}] = 7;
    measurement.node_causes[{"b", Errc::timed_out}] = 2;
    std::ostringstream out;
    print(out, "all at once", measurement);
    EXPECT_THAT(out.str(), HasSubstr("all at once: 100 times acquired and released in 2.0 s, 50 a second"));
    EXPECT_THAT(out.str(), testing::ContainsRegex("acquire +3.00 ms +3.00 ms +3.00 ms +3.00 ms +3.00 ms\n"));
    EXPECT_THAT(out.str(), testing::ContainsRegex("release +1.00 ms"));
    EXPECT_THAT(out.str(), testing::ContainsRegex("5.00 ms +100 +#{50}\n"));
    EXPECT_THAT(out.str(), HasSubstr("failed: acquire: no quorum, 7 times"));
    EXPECT_THAT(out.str(), HasSubstr("no vote: b: "));
}

TEST(BenchReport, HasABarForASingleLatencyAmongMany) {
    Measurement measurement;
    for (int i = 0; i < 100; ++i) measurement.acquire.record(3ms);
    measurement.acquire.record(30ms);
    std::ostringstream out;
    print(out, "all at once", measurement);
    EXPECT_THAT(out.str(), testing::ContainsRegex("50 ms +1 +#\n"));
    EXPECT_THAT(out.str(), testing::ContainsRegex("20 ms +0\n"));
}

TEST(BenchReport, HasThePercentilesInJsonInMilliseconds) {
    Measurement measured;
    for (int i = 1; i <= 200; ++i) measured.acquire.record(std::chrono::nanoseconds{i});
    std::ostringstream out;
    print_json(out, {&measured, 1}, {});
    for (const auto* const part : {"\"p50_ms\": 0.0001,", "\"p90_ms\": 0.00018,", "\"p99_ms\": 0.000198,",
                                   "\"p99_9_ms\": 0.0002,", "\"max_ms\": 0.0002\n"})
        EXPECT_THAT(out.str(), HasSubstr(part));
}

TEST(BenchReport, HasTheWritesOnSharedConnections) {
    Measurement measurement;
    measurement.shared_commands = 5;
    for (const auto waited : {0us, 300us}) measurement.shared_writes.record(waited);
    std::ostringstream out;
    print(out, "all at once", measurement);
    EXPECT_THAT(out.str(),
                HasSubstr("shared connections: 2 writes with 2.5 commands on average; the first of "
                          "them waited 0.00 ms (p50) or 0.30 ms (p99)\n"));
}

TEST(BenchReport, HasNoPercentilesWithoutMeasurements) {
    std::ostringstream out;
    print(out, "all at once", {});
    EXPECT_THAT(out.str(), HasSubstr("0 times acquired"));
    EXPECT_THAT(out.str(), Not(HasSubstr("p99")));
    EXPECT_THAT(out.str(), Not(HasSubstr("shared")));
}

}  // namespace
}  // namespace redlock::tool::bench_report_test
