// Checks the options of a lock. Each error names the field, its value, and what it must be.
#include "option_checks.hpp"

#include "../round/hash_slot.hpp"

#include <stdexcept>

namespace redlock {
namespace detail {

void throw_invalid_argument(const std::string& field, const std::string& has, const std::string& must) {
    throw std::invalid_argument("redlock: " + field + " is " + has + "; it must " + must);
}

std::string to_string(std::chrono::milliseconds span) {
    return std::to_string(span.count()) + " ms";
}

std::string to_string(std::chrono::nanoseconds span) {
    return std::to_string(span.count()) + " ns";
}

void check_ttl(const std::string& field, std::chrono::milliseconds ttl, double drift_factor,
               std::chrono::milliseconds node_timeout, std::chrono::milliseconds quarantine) {
    require(ttl > ttl.zero(), field, ttl, "be positive");
    require(ttl <= longest_ttl, field, ttl, "be at most ", longest_ttl, " (100 years)");
    const auto least = drift(ttl, drift_factor) + node_timeout;
    require(ttl > least, field, ttl, "exceed ", std::chrono::ceil<std::chrono::milliseconds>(least),
            " (the drift and NodesOptions::node_timeout), or no validity is left");
    require(quarantine <= quarantine.zero() || ttl <= quarantine, field, ttl,
            "be at most NodesOptions::quarantine, ", quarantine);
}

namespace {

/// The time before the margin must be long enough for an extension.
void check_margin(const std::string& field, const LockOptions& options,
                  std::chrono::milliseconds node_timeout) {
    const auto margin = options.margin;
    require(margin >= margin.zero() && margin < options.ttl - margin, field, margin,
            "be less than half of the ttl, ", options.ttl);
    if (margin == margin.zero()) return;
    const auto least = drift(options.ttl, options.drift_factor) + node_timeout;
    require(options.ttl - margin > least, field, margin, "leave more of the ttl than ",
            std::chrono::ceil<std::chrono::milliseconds>(least),
            " (the drift and NodesOptions::node_timeout)");
    require(options.watchdog, field, margin, "be used with LockOptions::watchdog, which reports the loss");
}

}  // namespace

void check_for_cluster(const Nodes& nodes, std::span<const std::string> resources, const LockOptions& options,
                       const std::string& type) {
    if (!nodes.has_cluster()) return;
    require(!options.fair, type + "::fair", "set",
            "not be used if a node is a Redis Cluster, because its servers keep no queue across a failover");
    require(
        !options.fencing, type + "::fencing", "set",
        "not be used if a node is a Redis Cluster, because a replica that is promoted may have lost counts");
    if (const auto problem = problem_in_cluster(resources))
        throw std::invalid_argument("redlock: " + *problem);
}

void check_lock(const LockOptions& options, const Nodes& nodes, std::span<const std::string> resources,
                const std::string& type) {
    check(options, nodes.node_timeout(), nodes.quarantine(), type);
    check_for_cluster(nodes, resources, options, type);
    require(!options.shared || resources.size() == 1, type + "::shared", "set",
            "be used with one resource only");
}

}  // namespace detail

void check(const LockOptions& options, std::chrono::milliseconds node_timeout,
           std::chrono::milliseconds quarantine, const std::string& type) {
    using namespace std::chrono_literals;
    const auto require = [&](bool possible, const char* field, const auto& has, const auto&... must) {
        if (!possible) detail::require(possible, type + "::" + field, has, must...);
    };
    const auto& retry = options.retry;
    require(options.drift_factor >= 0 && options.drift_factor < 1, "drift_factor", options.drift_factor,
            "be in [0, 1)");
    detail::check_ttl(type + "::ttl", options.ttl, options.drift_factor, node_timeout, quarantine);
    require(retry.attempts >= 1, "retry.attempts", retry.attempts, "be at least 1");
    require(retry.delay >= 1ms && retry.delay <= 24h, "retry.delay", retry.delay, "be from 1 ms to 24 h");
    const auto queue_timeout = options.queue_timeout.value_or(0ms);
    require(queue_timeout >= 0ms, "queue_timeout", queue_timeout, "be 0 or positive");
    require(!options.shared || !options.fair, "shared", "set", "not be combined with LockOptions::fair");
    require(options.min_hold >= 0ms && options.min_hold <= options.ttl, "min_hold", options.min_hold,
            "be from 0 to LockOptions::ttl, ", options.ttl);
    require(!options.shared || options.min_hold == 0ms, "min_hold", options.min_hold,
            "be 0 with LockOptions::shared");
    constexpr std::size_t longest_description = 1000;
    const auto length = options.holder.size();
    require(length <= longest_description, "holder", std::to_string(length) + " bytes long", "have at most ",
            longest_description);
    require(options.max_hold > 0ns, "max_hold", options.max_hold, "be positive");
    detail::check_margin(type + "::margin", options, node_timeout);
    require(!options.on_lost || options.watchdog, "on_lost", "set",
            "be used with LockOptions::watchdog, which calls it");
}

}  // namespace redlock
