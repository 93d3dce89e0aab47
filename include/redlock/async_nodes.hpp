// AsyncNodes has the connections of one event loop to the nodes. Locks of a loop (async_lock.hpp) are made
// with it:
//
//     redlock::RedisNodes nodes{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
//     MyLoop loop;                                   // implements EventLoop, see event_loop.hpp
//     redlock::AsyncNodes loop_nodes{nodes, loop};
//     redlock::AsyncLock lock{loop_nodes, "orders:42"};
//
// Programs with Asio do not need this class, because redlock/asio.hpp makes the object.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/event_loop.hpp>
#include <redlock/export.hpp>
#include <redlock/nodes.hpp>

#include <memory>

namespace redlock {

namespace loop {
class Front;  // all that an AsyncNodes has
}

/// The connections of one event loop. The functions of this object, and those of its locks, must be called in
/// the loop, as EventLoop describes. Only the queries of the locks, such as AsyncLock::valid(), may be called
/// by any thread.
///
/// The locks share one connection to each node. At most 256 operations ask the nodes at the same time. The
/// others wait, in the order in which they came. An acquisition waits until its deadline at most. An
/// extension waits until the validity of the lock is over, and then ends with `lost`.
///
/// After fork() the child may only destroy the object and its locks. This closes the child's copies of the
/// sockets, and touches neither the loop nor the servers.
class REDLOCK_EXPORT AsyncNodes {
public:
    /// Does no I/O. `clock` must be the clock of the nodes (Nodes::required_clock()). If `nodes` is not a
    /// RedisNodes, each round blocks the loop, which is good enough for tests only.
    ///
    /// The locks may outlive this object, see shut_down(). The arguments must exist until the following
    /// events:
    ///
    ///     argument           | must exist until
    ///     -------------------+------------------------------------------------------------------------------
    ///     nodes              | all locks are destroyed, and this object, too, unless `nodes` is a RedisNodes
    ///     event_loop         | shut_down() has returned, or this object is destroyed
    ///     clock and entropy  | this object and all locks are destroyed
    AsyncNodes(Nodes& nodes, EventLoop& event_loop, Clock& clock = boot_clock(),
               Entropy& entropy = os_entropy());

    /// Calls shut_down(). Must not be called by a completion. If the RedisNodes is already destroyed, nobody
    /// else can send the releases that shut_down() could not write. The destructor then sends them, and
    /// blocks for at most one NodesOptions::node_timeout.
    ~AsyncNodes();
    AsyncNodes(const AsyncNodes&) = delete;
    AsyncNodes& operator=(const AsyncNodes&) = delete;

    /// Ends the use of the loop. Blocks for at most a millisecond. When this function has returned, the
    /// library has called EventLoop::forget() for each descriptor, and does not use the loop any more.
    ///
    /// - All operations end. Their completions are destroyed without being called. Afterwards no operation
    ///   can begin, so a lock can only be destroyed.
    /// - Releases are written for the keys that these operations may have left, and for locks that were
    ///   destroyed but are not released yet. The sockets may not accept all of them. The destructor of the
    ///   RedisNodes sends the rest, for at most one node_timeout. Therefore the connections stay open.
    /// - A lock that is held stays valid for its remaining time, but is not extended any more. If it has
    ///   loop_watchdog(), a stop is therefore requested on its lost(). The destructor of the lock writes its
    ///   release in the same way as shut_down().
    void shut_down() noexcept;

    /// Returns true if this object was made from these nodes. A new Nodes in the memory of a destroyed one is
    /// not the same.
    bool are_of(const Nodes& nodes) const noexcept;

    /// Returns true if the RedisNodes and all locks of this object are destroyed, and none of their
    /// operations is under way. This object is then of no use, and its owner can destroy it.
    bool expired() const noexcept;

private:
    friend class AsyncLeader;
    friend class AsyncLock;

    std::shared_ptr<loop::Front> front_;
};

}  // namespace redlock
