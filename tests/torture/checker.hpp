// Searches the log of holds and the nodes for violations.
#pragma once

#include "hold_log.hpp"
#include "worker_pool.hpp"

#include "support/redis_server.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace redlock::torture {

/// Too many holds of one resource at once: usually two that are not both shared.
struct Overlap {
    unsigned resource;
    std::vector<Hold> holds;
};
std::vector<Overlap> overlaps(const std::vector<Hold>& holds);

/// A hold of a resource, or a term of a leader, whose fencing token is not larger than that of an earlier
/// one.
struct TokenRegression {
    Hold earlier;
    Hold later;
};
std::vector<TokenRegression> token_regressions(const std::vector<Hold>& holds);

/// Returns the holds whose loss was reported while the worker was running, sorted by the delay of the report.
std::vector<Hold> reported_losses(const std::vector<Hold>& holds, const std::vector<Suspension>& suspensions,
                                  bool of_leaders);
/// Returns how long after the end of the validity the loss was reported, in nanoseconds. A leader is notified
/// before the end, so its delay is negative.
std::int64_t delay_of_report(const Hold& hold);

/// Adds the keys of resources that a server still has after every ttl has passed, and the queues of waiters
/// that never expire.
void find_stray_keys(const support::RedisServer& node, std::vector<std::string>& stray);

std::string text(const Hold& hold);
std::string text(const Overlap& overlap);
std::string text(const TokenRegression& regression);

}  // namespace redlock::torture
