// What stands under a resource, node by node, and what that comes to: for people and for monitoring. It reads
// and changes nothing, and what it answers may be over by the time it is read: to have a lock, acquire it.
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

/// What stands there on one node.
struct NodeStatus {
    enum class State : std::uint8_t {
        unknown,  ///< the node did not answer, see cause
        free,     ///< nothing
        held,     ///< a text with an expiry: a lock, though perhaps not one of this library's
        no_lock,  ///< what no client's lock looks like: another type, or no expiry
    };

    std::string name{};  ///< of the node
    State state = State::unknown;
    std::string owner{};  ///< of a lock: its value, any bytes, the first 512. `redlock:rest`: released, and
                          ///< kept from everybody (LockOptions::at_least). `redlock:shared`: held by readers.
                          ///< With a '|': reserved for a waiter
    std::chrono::milliseconds expires_in{-1};  ///< negative: never, or nothing is held
    std::string type{};                        ///< of what is no lock
    std::string holder{};                      ///< what the owner says of itself (LockOptions::holder)
    std::size_t readers = 0;                   ///< that hold it beside one another (LockOptions::shared)
    std::size_t waiters = 0;                   ///< in the queue that this node keeps (LockOptions::fair)
    std::uint64_t fencing_count = 0;  ///< of the last holder that this node has counted; 0: it counts none
    std::error_code cause{};          ///< why the state is unknown
    std::string detail{};             ///< the server's or the system's own words
    std::chrono::nanoseconds took{};  ///< to the answer
};

/// What all of them together come to.
struct LockStatus {
    enum class Kind : std::uint8_t {
        held,       ///< one owner on a majority
        free,       ///< nothing on a majority
        split,      ///< neither, and the nodes that are silent could not change that
        uncertain,  ///< the nodes that are silent would decide
        no_quorum,  ///< no majority has answered
    };

    Kind kind = Kind::no_quorum;
    std::size_t answered = 0;                  ///< nodes
    std::size_t no_locks = 0;                  ///< nodes whose key is none
    std::string owner{};                       ///< the one on the most nodes
    std::size_t held_on = 0;                   ///< and on how many
    std::chrono::milliseconds expires_in{-1};  ///< where held: until it is on no majority
    std::string holder{};                      ///< what it says of itself, where it does
    std::size_t readers = 0;                   ///< on the node that has most
    std::vector<NodeStatus> nodes{};           ///< in the order configured
};

/// Asks all nodes at once, and waits for each that is not known to be down: one node_timeout at most, however
/// many do not answer. Throws std::invalid_argument for a resource that is empty or too long. Needs the
/// permissions of docs/operations.md; what may not be read there is left out. With a Nodes of one's own that
/// does not know Verb::query every state is unknown.
REDLOCK_EXPORT LockStatus query(Nodes& nodes, const std::string& resource);

namespace detail {

/// Of what a node has answered.
REDLOCK_EXPORT NodeStatus to_status(const NodeReport& report);
REDLOCK_EXPORT LockStatus conclude(std::vector<NodeStatus> nodes);

}  // namespace detail
}  // namespace redlock
