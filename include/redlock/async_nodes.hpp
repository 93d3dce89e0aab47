// The nodes as one event loop uses them. Locks of a loop (async_lock.hpp) are made with an AsyncNodes in
// place of a Nodes:
//
//     redlock::RedisNodes nodes{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
//     MyLoop loop;                                   // implements EventLoop, see event_loop.hpp
//     redlock::AsyncNodes of_loop{nodes, loop};
//     redlock::AsyncLock lock{of_loop, "orders:42"};
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
class Front;
}

/// The nodes of one event loop. It has connections of its own. All its functions, and those of its locks,
/// must be called in the loop, as EventLoop describes. Objects may be made before the loop runs. The queries
/// of the locks may be called by any thread.
///
/// Its rounds share one connection to each node. At most 256 rounds are under way at the same time. Further
/// rounds wait in order, within the deadlines of their operations.
///
/// After fork() the child may only destroy the object and its locks. This closes the child's copies of the
/// sockets, and touches neither the loop nor the servers.
class REDLOCK_EXPORT AsyncNodes {
public:
    /// Does no I/O. `loop` must exist until shut_down() is called or this object is destroyed. If `nodes` is
    /// a RedisNodes, it may be destroyed before this object. A Nodes of another class must outlive this
    /// object, and each of its rounds blocks the loop, which only tests can accept. `clock` must be the clock
    /// of the nodes (Nodes::required_clock()).
    AsyncNodes(Nodes& nodes, EventLoop& loop, Clock& clock = boot_clock(), Entropy& entropy = os_entropy());

    /// Calls shut_down(). Must not be called by a completion. Does not block if the RedisNodes still exists,
    /// because its destructor sends the unsent releases. If the RedisNodes was destroyed before, sends the
    /// unsent releases itself, and blocks for at most one node_timeout.
    ~AsyncNodes();
    AsyncNodes(const AsyncNodes&) = delete;
    AsyncNodes& operator=(const AsyncNodes&) = delete;

    /// Ends the use of the loop, within a millisecond. All operations end, and their completions are
    /// destroyed without being called. The releases of these operations, and of locks that were destroyed
    /// before, are written as far as the sockets accept them. The destructor of the RedisNodes sends the
    /// rest, for at most one node_timeout. A lock that is held is released when it is destroyed. Afterwards
    /// the locks can only be destroyed. The library has then called EventLoop::forget() for each descriptor.
    void shut_down() noexcept;

    /// Returns true if this object was made from these nodes. Another Nodes at the same address is not the
    /// same.
    bool are_of(const Nodes& nodes) const noexcept;

    /// Returns true if the RedisNodes was destroyed and nothing is left to do.
    bool expired() const noexcept;

private:
    friend class AsyncLock;

    std::shared_ptr<loop::Front> front_;
};

}  // namespace redlock
