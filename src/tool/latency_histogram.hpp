// Counts of latencies in buckets that grow with the latency: percentiles within 1 %, in memory that does not
// grow with the time measured.
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

    /// The least latency that so many per cent of those recorded do not exceed; up to 1 % more, never more
    /// than the largest. Zero where nothing was recorded.
    Span percentile(double percent) const;

    /// How many are in [from, to), as far as the buckets tell.
    std::uint64_t between(Span from, Span to) const;

private:
    // 128 buckets for each doubling: below 256 ns each number has its own.
    static constexpr unsigned bits = 7;
    static constexpr std::size_t bucket_count = (64 - bits) << bits;
    static std::size_t bucket_of(std::uint64_t ns) noexcept;
    static std::uint64_t begin_of(std::size_t bucket) noexcept;

    std::vector<std::uint64_t> counts_;
    std::uint64_t total_ = 0;
    Span largest_{0};
};

}  // namespace redlock::tool
