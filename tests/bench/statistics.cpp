#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace redlock::bench {

double percentile(std::vector<double> samples, double quantile) {
    if (samples.empty()) return 0;
    const auto last = static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::ptrdiff_t>(std::floor(quantile * last));
    const auto nth = samples.begin() + below;
    std::ranges::nth_element(samples, nth);
    const auto share = quantile * last - static_cast<double>(below);
    if (share <= 0) return *nth;
    return *nth + share * (*std::min_element(nth + 1, samples.end()) - *nth);
}

Spread spread(const std::vector<double>& repetitions) {
    if (repetitions.empty()) return {};
    const auto [least, most] = std::ranges::minmax_element(repetitions);
    return {*least, median(repetitions), *most};
}

}  // namespace redlock::bench
