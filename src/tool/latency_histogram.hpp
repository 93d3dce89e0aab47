// Counts latencies in buckets whose width grows with the latency. Percentiles are exact within 1 %, and the
// memory does not grow with the duration of the measurement.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace redlock::tool {

class LatencyHistogram {
public:
    using Span = std::chrono::nanoseconds;

    LatencyHistogram() : counts_(bucket_count) {}

    void record(Span latency);
    void add(const LatencyHistogram& other);

    std::uint64_t count() const noexcept { return total_; }
    Span largest() const noexcept { return largest_; }

    /// Returns the smallest latency that `percent` of the recorded latencies do not exceed. The result may be
    /// up to 1 % too large, but never larger than the largest latency. Returns zero if nothing was recorded.
    Span percentile(double percent) const;

    /// Returns how many latencies are in [from, to). A bucket counts if it begins in this range.
    std::uint64_t between(Span from, Span to) const;

private:
    // There are 128 buckets for each doubling. Below 256 ns each number has a bucket of its own.
    static constexpr unsigned bits = 7;
    static constexpr std::size_t bucket_count = (64 - bits) << bits;
    static std::size_t bucket_of(std::uint64_t ns) noexcept;
    static std::uint64_t begin_of(std::size_t bucket) noexcept;

    std::vector<std::uint64_t> counts_;
    std::uint64_t total_ = 0;
    Span largest_{0};
};

}  // namespace redlock::tool
