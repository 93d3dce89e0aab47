// Percentiles of the bench: right within a per cent, whatever was recorded.
#include "tool/bench/latency_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace redlock::tool::latency_histogram_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(LatencyHistogram, IsZeroWithoutMeasurements) {
    const LatencyHistogram histogram;
    EXPECT_EQ(histogram.count(), 0U);
    EXPECT_EQ(histogram.percentile(50), 0ns);
    EXPECT_EQ(histogram.percentile(100), 0ns);
}

TEST(LatencyHistogram, IsExactForSmallNumbers) {
    LatencyHistogram histogram;
    for (int i = 1; i <= 100; ++i) histogram.record(nanoseconds{i});
    EXPECT_EQ(histogram.percentile(50), 50ns);
    EXPECT_EQ(histogram.percentile(90), 90ns);
    EXPECT_EQ(histogram.percentile(99), 99ns);
    EXPECT_EQ(histogram.percentile(99.9), 100ns);
    EXPECT_EQ(histogram.percentile(100), 100ns);
    EXPECT_EQ(histogram.percentile(0), 1ns);
}

// Of a thousand, p99.9 is the second largest at most: the next is the maximum.
TEST(LatencyHistogram, DoesNotReportTheMaximumAsAPercentile) {
    LatencyHistogram histogram;
    for (int i = 0; i < 999; ++i) histogram.record(1ms);
    histogram.record(1s);
    EXPECT_LT(histogram.percentile(99.9), 2ms);
    EXPECT_EQ(histogram.percentile(100), 1s);
}

TEST(LatencyHistogram, HasAnErrorOfAtMostOnePercent) {
    std::mt19937_64 random{42};
    std::lognormal_distribution<double> latency{12, 2};  // around 0.16 ms
    LatencyHistogram histogram;
    std::vector<nanoseconds> all;
    for (int i = 0; i < 10'000; ++i) {
        all.emplace_back(static_cast<nanoseconds::rep>(latency(random)));
        histogram.record(all.back());
    }
    std::ranges::sort(all);
    for (const double percent : {1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
        const auto exact = all[static_cast<std::size_t>(std::ceil(percent * 100)) - 1];
        EXPECT_GE(histogram.percentile(percent), exact) << percent;
        EXPECT_LE(static_cast<double>(histogram.percentile(percent).count()),
                  1.01 * static_cast<double>(exact.count()))
            << percent;
    }
}

TEST(LatencyHistogram, AcceptsAnyLatency) {
    LatencyHistogram histogram;
    histogram.record(nanoseconds::max());
    histogram.record(0ns);
    histogram.record(-1ns);  // a clock that is not what it should be
    EXPECT_EQ(histogram.count(), 3U);
    EXPECT_EQ(histogram.percentile(50), 0ns);
    EXPECT_EQ(histogram.percentile(100), nanoseconds::max());
}

TEST(LatencyHistogram, CountsTheLatenciesOfEachBucket) {
    LatencyHistogram histogram;
    for (int i = 1; i <= 100; ++i) histogram.record(nanoseconds{i});
    histogram.record(7ns);
    EXPECT_EQ(histogram.counts().size(), 100U);
    EXPECT_EQ(histogram.counts().at(7ns), 2U);
    EXPECT_EQ(histogram.counts().at(100ns), 1U);
}

}  // namespace
}  // namespace redlock::tool::latency_histogram_test
