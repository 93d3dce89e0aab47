// The load of `redlock bench`: several threads acquire and release locks of different resources. Measures how
// fast they are and counts failures.
#pragma once

#include "latency_histogram.hpp"

#include <redlock/nodes.hpp>
#include <redlock/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <utility>

namespace redlock::tool {

struct Workload {
    std::string prefix{};  ///< the name of each thread's resource begins with it
    LockOptions lock{};
    std::size_t threads = 1;
};

/// The operation or the node that failed, and the reason.
using Failure = std::pair<std::string, std::error_code>;

/// The writes on connections that rounds share.
struct SharedWrites {
    std::uint64_t commands = 0;
    LatencyHistogram waited{};  ///< for each write, how long its first command was collected
};

/// The result of a run. `redlock bench` makes one for each kind of round.
struct Measurement {
    Round round = Round::sequential;
    LatencyHistogram acquire{};                      ///< latencies of successful acquisitions
    LatencyHistogram release{};                      ///< latencies of the releases of these acquisitions
    std::map<Failure, std::uint64_t> failures{};     ///< failed operations, by name and error
    std::map<Failure, std::uint64_t> node_causes{};  ///< missing votes, by node and cause
    std::chrono::nanoseconds took{};
    SharedWrites shared_writes{};

    double per_second() const;
};

/// Runs the load until `goes_on` returns false. `goes_on` is called in this thread with the number of
/// acquisitions so far, and must wait a little each time. When the function returns, no lock is held any
/// more.
Measurement run(Nodes& nodes, const Workload& workload,
                const std::function<bool(std::uint64_t acquired)>& goes_on);

}  // namespace redlock::tool
