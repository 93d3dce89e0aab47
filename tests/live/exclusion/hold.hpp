// A hold is an interval of CLOCK_MONOTONIC, which all processes of a machine share: from an instant after the
// lock was acquired to the last instant at which it was seen to be valid. Two holds of one resource must not
// overlap (S1).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace redlock::exclusion {

/// CLOCK_MONOTONIC, in nanoseconds.
inline std::int64_t monotonic_now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

struct Hold {
    std::int64_t from = 0;
    std::int64_t until = 0;
    std::size_t worker = 0;
};

struct Overlap {
    Hold earlier;
    Hold later;

    std::string text() const {
        const auto span = std::min(earlier.until, later.until) - later.from;
        return "worker " + std::to_string(earlier.worker) + " and worker " + std::to_string(later.worker) +
               " held at once for " + std::to_string(static_cast<double>(span) / 1e6) + " ms at " +
               std::to_string(later.from) + " ns";
    }
};

/// Every hold that began before an earlier one had ended.
inline std::vector<Overlap> overlaps(std::vector<Hold> holds) {
    std::ranges::sort(holds, {}, &Hold::from);
    std::vector<Overlap> result;
    Hold longest;
    for (const auto& hold : holds) {
        if (hold.from < longest.until) result.push_back({longest, hold});
        if (hold.until > longest.until) longest = hold;
    }
    return result;
}

inline std::string text(const std::vector<Overlap>& overlaps) {
    std::string result;
    for (const auto& overlap : overlaps) result += overlap.text() + '\n';
    return result;
}

}  // namespace redlock::exclusion
