// Reads the state of a lock on each node, and what all nodes together say. This is for people and monitoring:
// it changes nothing, and its result can be out of date when it is read. To be sure of a lock, acquire it.
//
//     const auto status = redlock::query(nodes, "orders:42");
//     if (status.kind == redlock::LockStatus::Kind::held) log(status.owner + " " + status.holder);
#pragma once

#include <redlock/export.hpp>
#include <redlock/nodes.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace redlock {

/// The state of a resource on one node.
struct NodeStatus {
    enum class State : std::uint8_t {
        unknown,  ///< The node did not answer; `cause` has the reason.
        free,     ///< There is no key.
        held,     ///< The key is a text with an expiry: a lock, possibly of another program.
        no_lock,  ///< The key has another type or no expiry, so that it is no lock.
    };

    /// The name of the node.
    std::string name{};
    State state = State::unknown;
    /// The value of a lock: any bytes, but at most the first 512. These values are not owners:
    ///
    /// - `redlock:min-hold`: the lock was released, and its minimum hold time (LockOptions::min_hold) is not
    ///   over;
    /// - `redlock:shared` or `redlock:shared-tag`: readers hold the resource (LockOptions::shared);
    /// - `redlock:wake:` and what follows it: the resource is reserved for a waiter (LockOptions::fair).
    std::string owner{};
    /// The remaining time of the key; negative if it has no expiry or there is no key.
    std::chrono::milliseconds expires_in{-1};
    /// The type of a key that is no lock.
    std::string type{};
    /// The description that the holder has left (LockOptions::holder).
    std::string holder{};
    /// The number of readers that hold the resource (LockOptions::shared).
    std::size_t readers = 0;
    /// The number of waiters in the queue of this node (LockOptions::fair).
    std::size_t waiters = 0;
    /// The count of the last holder with LockOptions::fencing; 0 if this node has no count.
    std::uint64_t fencing_count = 0;
    /// Why the state is unknown.
    std::error_code cause{};
    /// The error text of the server or the system.
    std::string detail{};
    /// The time until the node answered, or was given up.
    std::chrono::nanoseconds took{};
};

/// The state of a resource on all nodes together.
struct LockStatus {
    enum class Kind : std::uint8_t {
        held,       ///< A majority holds the key of one owner.
        free,       ///< A majority has no key.
        split,      ///< Neither, and the nodes that did not answer cannot change that.
        uncertain,  ///< The nodes that did not answer could make it `held` or `free`.
        no_quorum,  ///< Fewer than a majority have answered.
    };

    Kind kind = Kind::no_quorum;
    std::size_t answered = 0;                  ///< The number of nodes that answered.
    std::size_t no_locks = 0;                  ///< The number of nodes whose key is no lock.
    std::string owner{};                       ///< The owner that the most nodes have.
    std::size_t held_on = 0;                   ///< The number of nodes that have this owner.
    std::chrono::milliseconds expires_in{-1};  ///< If held: how long a majority has the key.
    std::string holder{};                      ///< The description that this owner has left.
    std::size_t readers = 0;                   ///< The largest number of readers on a node.
    std::vector<NodeStatus> nodes{};           ///< One entry for each node, in the configured order.
};

/// Reads the state of `resource` in one round to all nodes at once. Blocks for at most one node_timeout, and
/// does not wait for nodes that are known to be down.
///
/// Throws std::invalid_argument if the resource is empty or too long. Needs the permissions that
/// docs/operations.md lists; what the user may not read is left out. If a Nodes of your own does not support
/// Verb::query, every state is `unknown`.
REDLOCK_EXPORT LockStatus query(Nodes& nodes, const std::string& resource);

namespace detail {

/// Returns the state that a node has reported.
REDLOCK_EXPORT NodeStatus to_status(const NodeReport& report);
/// Returns what all nodes together say.
REDLOCK_EXPORT LockStatus conclude(std::vector<NodeStatus> nodes);

}  // namespace detail
}  // namespace redlock
