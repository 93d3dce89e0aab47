// Prints a measurement for people.
#pragma once

#include "workload.hpp"

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace redlock::tool {

/// The number of latencies in [from, to). A bucket counts if it ends in this range.
struct Bar {
    std::chrono::nanoseconds from;
    std::chrono::nanoseconds to;
    std::uint64_t count;
};

/// Returns the bars on a logarithmic scale of 1, 2, 5, 10, 20, 50 ... µs, from the first bar that has a
/// latency to the last.
std::vector<Bar> bars_of(const LatencyHistogram& latencies);

/// Prints the percentiles of both operations, a histogram of the time to acquire, and the failures by cause.
void print(std::ostream& out, const std::string& title, const Measurement& measurement);

}  // namespace redlock::tool
