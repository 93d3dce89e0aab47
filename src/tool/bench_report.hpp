// A measurement for people.
#pragma once

#include "workload.hpp"

#include <redlock/redis_nodes.hpp>

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace redlock::tool {

/// How many latencies are in [from, to).
struct Bar {
    std::chrono::nanoseconds from;
    std::chrono::nanoseconds to;
    std::uint64_t count;
};

/// On a log scale: 1, 2, 5, 10, 20, 50 ... µs, from the first that has any to the last.
std::vector<Bar> bars_of(const LatencyHistogram& latencies);

/// What `bench` measures twice: each kind of round.
struct MeasuredRound {
    Round round;
    Measurement measurement;
};

/// Percentiles of both verbs, failures by cause, and a histogram of the time it took to acquire.
void print(std::ostream& out, const std::string& title, const Measurement& measurement);

}  // namespace redlock::tool
