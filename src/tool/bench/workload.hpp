// The load of `redlock bench`: several threads acquire and release locks of different resources. Measures how
// fast they are and counts failures.
#pragma once

#include "latency_histogram.hpp"

#include <redlock/lock.hpp>
#include <redlock/nodes.hpp>
#include <redlock/observer.hpp>
#include <redlock/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
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

/// The result of a run. `redlock bench` makes one for each kind of round.
struct Measurement {
    Round round = Round::sequential;
    LatencyHistogram acquire{};                      ///< latencies of successful acquisitions
    LatencyHistogram release{};                      ///< latencies of the releases of these acquisitions
    std::map<Failure, std::uint64_t> failures{};     ///< failed operations, by name and error
    std::map<Failure, std::uint64_t> node_causes{};  ///< missing votes, by node and cause
    std::chrono::nanoseconds took{};
    std::uint64_t shared_commands = 0;  ///< commands in the writes on connections that rounds share
    LatencyHistogram shared_writes{};  ///< for each of these writes, how long its first command was collected

    double per_second() const;
};

/// Makes one measurement, which all threads share. As an observer of the nodes, it also counts their writes.
class Meter final : public Observer {
public:
    /// Runs the load until `goes_on` returns false. `goes_on` is called in this thread with the number of
    /// acquisitions so far, and must wait a little each time. When the function returns, no lock is held any
    /// more.
    Measurement run(Nodes& nodes, const Workload& workload,
                    const std::function<bool(std::uint64_t acquired)>& goes_on);

    void wrote(std::string_view node, std::size_t commands,
               std::chrono::nanoseconds waited) noexcept override;

private:
    void use(Lock& lock, const std::stop_token& stop);
    void record(const char* verb, const Result& result);

    std::mutex mutex_{};
    Measurement measurement_{};
};

}  // namespace redlock::tool
