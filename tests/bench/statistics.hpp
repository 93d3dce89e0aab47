// Statistics of many measurements: the median, the percentiles, the spread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace redlock::bench {

/// Returns the value below which the share `quantile` of the samples lies, or 0 if there are none.
inline double percentile(std::vector<double> samples, double quantile) {
    if (samples.empty()) return 0;
    std::ranges::sort(samples);
    const auto rank = quantile * static_cast<double>(samples.size() - 1);
    const auto below = samples[static_cast<std::size_t>(rank)];
    const auto above = samples[static_cast<std::size_t>(std::ceil(rank))];
    return std::lerp(below, above, rank - std::floor(rank));
}

inline double median(std::vector<double> samples) {
    return percentile(std::move(samples), 0.5);
}

/// The median of several repetitions, and their extremes.
struct Spread {
    double least = 0;
    double middle = 0;
    double most = 0;
};

inline Spread spread(const std::vector<double>& repetitions) {
    return {percentile(repetitions, 0), median(repetitions), percentile(repetitions, 1)};
}

}  // namespace redlock::bench
