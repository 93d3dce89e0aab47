// One recorded acquisition: when each node was asked and had replied, and the outcome.
#pragma once

#include <redlock/redlock.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace redlock::bench {

/// Instants are relative to the start of the attempt, from which the validity counts.
struct Recording {
    using Span = std::chrono::nanoseconds;

    struct Exchange {
        Vote vote;
        std::string cause;  ///< why the vote is unknown; empty otherwise
        Span start;
        Span end;
    };

    Round round;
    std::vector<Exchange> nodes{};
    Span starts_within{};  ///< each node was asked at most this long after its `start`
    Span quorum{};         ///< the end of the exchange that completed the majority
    Span round_ended{};
    Span valid_until{};
    Span ttl{};
};

/// Acquires a lock on the nodes once. It first makes the connections, then calls `strike`, so that the
/// recording contains only the acquisition and the fault. Throws std::runtime_error if the first attempt
/// fails, or if the durations in the report do not add up.
Recording record(const std::vector<std::string>& uris, Round round, const LockOptions& lock_options,
                 std::chrono::milliseconds node_timeout, const std::function<void()>& strike);

}  // namespace redlock::bench
