// Acquire and release, again and again, in several threads that do not meet: how fast, and what failed.
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
    std::string prefix{};  ///< each thread has a resource of its own below it
    LockOptions lock{};
    std::size_t threads = 1;
};

/// Of what, and why.
using Failure = std::pair<std::string, std::error_code>;

/// What has come of it.
struct Measurement {
    LatencyHistogram acquire{};                      ///< of the acquisitions that succeeded
    LatencyHistogram release{};                      ///< and of their releases
    std::map<Failure, std::uint64_t> failures{};     ///< what failed, by verb and error
    std::map<Failure, std::uint64_t> node_causes{};  ///< votes that were not had, by node and cause
    std::chrono::nanoseconds took{};

    void add(const Measurement& other);
    double per_second() const;
};

/// Runs for as long as `goes_on`, which is called from here, waits a little each time, and is told how many
/// acquisitions there were so far. Nothing is held any more when it returns.
Measurement run(Nodes& nodes, const Workload& workload,
                const std::function<bool(std::uint64_t acquired)>& goes_on);

}  // namespace redlock::tool
