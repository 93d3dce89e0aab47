#include "latency_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace redlock::tool {

/// The position of the leading bit selects the doubling. The seven bits behind it select the bucket within
/// the doubling.
std::size_t LatencyHistogram::bucket_of(std::uint64_t ns) noexcept {
    const auto width = static_cast<unsigned>(std::bit_width(ns));
    if (width <= bits + 1) return static_cast<std::size_t>(ns);
    const auto shift = width - bits - 1;
    return (std::size_t{shift} << bits) + static_cast<std::size_t>(ns >> shift);
}

std::uint64_t LatencyHistogram::begin_of(std::size_t bucket) noexcept {
    constexpr std::size_t single = std::size_t{2} << bits;
    if (bucket < single) return bucket;
    const auto shift = (bucket >> bits) - 1;
    return static_cast<std::uint64_t>(bucket - (shift << bits)) << shift;
}

void LatencyHistogram::record(Span latency) {
    latency = std::max(latency, Span::zero());
    ++counts_[bucket_of(static_cast<std::uint64_t>(latency.count()))];
    ++total_;
    largest_ = std::max(largest_, latency);
}

void LatencyHistogram::add(const LatencyHistogram& other) {
    for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) counts_[bucket] += other.counts_[bucket];
    total_ += other.total_;
    largest_ = std::max(largest_, other.largest_);
}

auto LatencyHistogram::percentile(double percent) const -> Span {
    const auto wanted = std::max(std::ceil(percent * static_cast<double>(total_) / 100 - 1e-6), 1.0);
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
        seen += counts_[bucket];
        if (static_cast<double>(seen) < wanted) continue;
        const auto last = static_cast<Span::rep>(begin_of(bucket + 1) - 1);
        return std::min(Span{last}, largest_);
    }
    return largest_;
}

std::uint64_t LatencyHistogram::between(Span from, Span to) const {
    std::uint64_t result = 0;
    for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
        const auto begin = static_cast<Span::rep>(begin_of(bucket));
        if (begin >= from.count() && begin < to.count()) result += counts_[bucket];
    }
    return result;
}

}  // namespace redlock::tool
