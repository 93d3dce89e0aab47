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
/// The locks share one connection to each node. At most 256 of them ask the nodes at the same time. The
/// others wait, in the order in which they came. An acquisition waits until its deadline at most. An
/// extension waits until the validity of the lock is over, and then ends with `lost`.
///
/// After fork() the child may only destroy the object and its locks. This closes the child's copies of the
/// sockets, and touches neither the loop nor the servers.
class REDLOCK_EXPORT AsyncNodes {
public:
    /// Does no I/O. `clock` must be the clock of the nodes (Nodes::required_clock()). A Nodes that is no
    /// RedisNodes blocks the loop while it asks its nodes, which only tests can accept.
    ///
    /// - The locks of this object may outlive it, see shut_down().
    /// - `nodes` must outlive the locks. Unless it is a RedisNodes, it must also outlive this object.
    /// - `event_loop` must exist until shut_down() is called or this object is destroyed.
    /// - `clock` and `entropy` must outlive this object and its locks.
    AsyncNodes(Nodes& nodes, EventLoop& event_loop, Clock& clock = boot_clock(),
               Entropy& entropy = os_entropy());

    /// Calls shut_down(). Must not be called by a completion. If the RedisNodes was destroyed before, then
    /// sends what shut_down() has left to send, and blocks for at most NodesOptions::node_timeout.
    ~AsyncNodes();
    AsyncNodes(const AsyncNodes&) = delete;
    AsyncNodes& operator=(const AsyncNodes&) = delete;

    /// Ends the use of the loop. Blocks for at most a millisecond. All operations of the locks end, and their
    /// completions are destroyed without being called. The releases of these operations, and of locks that
    /// were destroyed before, are written as far as the sockets accept them. The destructor of the RedisNodes
    /// sends the rest, for at most one node_timeout. A stop is requested on the lost() of each lock that has
    /// loop_watchdog(), because the lock is not extended any more. The lock stays valid for its remaining
    /// time.
    ///
    /// When this function has returned, the library has called EventLoop::forget() for each descriptor, and
    /// the locks can only be destroyed. The connections stay open, and the destructor of a lock that is held
    /// writes its release in the same way.
    void shut_down() noexcept;

    /// Returns true if this object was made from these nodes. A new Nodes in the memory of a destroyed one is
    /// not the same.
    bool are_of(const Nodes& nodes) const noexcept;

    /// Returns true if the RedisNodes was destroyed and nothing is left to do.
    bool expired() const noexcept;

private:
    friend class AsyncLeader;
    friend class AsyncLock;

    std::shared_ptr<loop::Front> front_;
};

}  // namespace redlock
