// Counts latencies in buckets whose width grows with the latency. Percentiles are exact within 1 %, and the
// memory does not grow with the duration of the measurement.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

namespace redlock::tool {

class LatencyHistogram {
public:
    using Span = std::chrono::nanoseconds;

    void record(Span latency);

    std::uint64_t count() const noexcept { return total_; }

    /// Returns the smallest latency that `percent` of the recorded latencies do not exceed. The result may be
    /// up to 1 % too large, but never larger than the largest latency. Returns zero if nothing was recorded.
    Span percentile(double percent) const;

    /// Returns the number of latencies in each bucket that has any, by the largest latency of the bucket.
    const std::map<Span, std::uint64_t>& counts() const noexcept { return counts_; }

private:
    std::map<Span, std::uint64_t> counts_{};
    std::uint64_t total_ = 0;
    Span largest_{0};
};

}  // namespace redlock::tool
