// What is said of many measurements: the middle, the tail, the spread.
#pragma once

#include <vector>

namespace redlock::bench {

/// The value below which the share `quantile` of the samples lies; 0 if there are none.
double percentile(std::vector<double> samples, double quantile);

inline double median(std::vector<double> samples) {
    return percentile(std::move(samples), 0.5);
}

/// The middle of several repetitions, and how far apart they were.
struct Spread {
    double least = 0;
    double middle = 0;
    double most = 0;
};

Spread spread(const std::vector<double>& repetitions);

}  // namespace redlock::bench
