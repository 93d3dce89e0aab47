// What must not be found in the log of holds, nor on the nodes.
#pragma once

#include "hold_log.hpp"
#include "worker_pool.hpp"

#include "support/redis_server.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace redlock::torture {

/// More holds of one resource at once than there may be: of two of them that are not both shared, mostly.
struct Overlap {
    unsigned resource;
    std::vector<Hold> holds;
};
std::vector<Overlap> overlaps(const std::vector<Hold>& holds);

/// A hold of a resource, or a leader's term, whose fencing token is not larger than that of an earlier one.
struct TokenRegression {
    Hold earlier;
    Hold later;
};
std::vector<TokenRegression> token_regressions(const std::vector<Hold>& holds);

/// How long after the end of its validity each loss was notified, in nanoseconds, sorted: those of workers
/// that were running at the time. Leaders' are notified before: negative.
std::vector<std::int64_t> notification_delays(const std::vector<Hold>& holds,
                                              const std::vector<Suspension>& suspensions, bool of_leaders);

/// Adds the keys of resources that a server still has though every ttl is over, and the queues of waiters
/// that never expire.
void find_stray_keys(const support::RedisServer& node, std::vector<std::string>& stray);

std::string text(const Overlap& overlap);
std::string text(const TokenRegression& regression);

}  // namespace redlock::torture
