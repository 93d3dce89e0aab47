// Reads the state of a lock on each node, for people and monitoring. It changes nothing. The result can be
// out of date when it is read, so a program that needs the lock must acquire it.
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
        held,     ///< The key is a string with an expiry: a lock, possibly of another program.
        no_lock,  ///< The key has another type or no expiry, so that it is no lock.
    };

    /// The name of the node.
    std::string name{};
    State state = State::unknown;
    /// The value of the key: any bytes, but at most the first 512. Mostly it is the owner of the lock. These
    /// values have another meaning:
    ///
    /// - `redlock:min-hold`: the lock was released, and LockOptions::min_hold is not over.
    /// - `redlock:shared` or `redlock:shared-tag`: readers hold the resource (LockOptions::shared).
    /// - `redlock:wake:` and further text: the resource is reserved for a waiter (LockOptions::fair).
    std::string owner{};
    /// The remaining time of the key; negative if there is no key or it has no expiry.
    std::chrono::milliseconds expires_in{-1};
    /// The type of a key that is no lock.
    std::string type{};
    /// The text of LockOptions::holder.
    std::string holder{};
    /// The number of readers that hold the resource (LockOptions::shared).
    std::size_t readers = 0;
    /// The number of waiters in the queue of this node (LockOptions::fair).
    std::size_t waiters = 0;
    /// The node's count of the holders with LockOptions::fencing; 0 if it has none.
    std::uint64_t fencing_count = 0;
    /// Why the state is unknown.
    std::error_code cause{};
    /// The error text of the server or the system.
    std::string detail{};
    /// The time that the node took.
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
    std::string holder{};                      ///< The text of LockOptions::holder of this owner.
    std::size_t readers = 0;                   ///< The largest number of readers on a node.
    std::vector<NodeStatus> nodes{};           ///< One entry for each node, in the configured order.
};

/// Reads the state of `resource` from all nodes at once. Blocks for at most one node_timeout, and does not
/// wait for nodes that are known to be down. Throws std::invalid_argument if the resource is empty or too
/// long.
///
/// docs/operations.md lists the permissions that the Redis user needs. If some of them are missing, the
/// fields that need them stay empty.
REDLOCK_EXPORT LockStatus query(Nodes& nodes, const std::string& resource);

namespace detail {

/// Returns the state that a node has reported.
REDLOCK_EXPORT NodeStatus to_status(const NodeReport& report);
/// Returns what all nodes together say.
REDLOCK_EXPORT LockStatus conclude(std::vector<NodeStatus> nodes);

}  // namespace detail
}  // namespace redlock
