#include "latency_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace redlock::tool {

/// There are 128 buckets for each doubling. Below 256 ns each number has a bucket of its own.
void LatencyHistogram::record(Span latency) {
    latency = std::max(latency, Span::zero());
    const auto ns = static_cast<std::uint64_t>(latency.count());
    const auto width = std::bit_width(ns >> 8U);
    ++counts_[Span{static_cast<Span::rep>(ns | ((std::uint64_t{1} << width) - 1))}];
    ++total_;
    largest_ = std::max(largest_, latency);
}

auto LatencyHistogram::percentile(double percent) const -> Span {
    const auto wanted = std::max(std::ceil(percent * static_cast<double>(total_) / 100 - 1e-6), 1.0);
    std::uint64_t seen = 0;
    for (const auto& [last, count] : counts_)
        if (static_cast<double>(seen += count) >= wanted) return std::min(last, largest_);
    return largest_;
}

}  // namespace redlock::tool
