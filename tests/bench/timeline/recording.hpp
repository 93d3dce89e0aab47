// One acquisition as it went: when each node was asked and had answered, and what became of the lock.
#pragma once

#include <redlock/redlock.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace redlock::bench {

/// Instants are counted from the start of the attempt: the time that the validity is counted from.
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
    Span starts_within{};  ///< no node was asked later than this after the start given for it
    Span quorum{};         ///< the end of the exchange that made the majority
    Span round_ended{};
    Span valid_until{};
    Span ttl{};
};

/// Acquires a lock on the nodes once. Connections are made first, then `strike` is called, so that what
/// is recorded is the acquisition and the trouble alone. Throws std::runtime_error when the lock was not had
/// at the first attempt, or when what the report says does not add up.
Recording record(const std::vector<std::string>& uris, Round round, const LockOptions& lock_options,
                 std::chrono::milliseconds node_timeout, const std::function<void()>& strike);

}  // namespace redlock::bench
