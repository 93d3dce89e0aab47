// AsyncNodes has the connections of one event loop to the Redis servers. The locks, semaphores and leaders of
// a loop are made with it:
//
//     #include <redlock/async_lock.hpp>
//     #include <redlock/redis_nodes.hpp>
//
//     redlock::RedisNodes nodes{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
//     MyLoop loop;                                   // implements EventLoop, see event_loop.hpp
//     redlock::AsyncNodes loop_nodes{nodes, loop};
//     redlock::AsyncLock lock{loop_nodes, "orders:42"};
//
// Programs with Asio do not use this class. Their locks (redlock/asio.hpp) make the object themselves.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/event_loop.hpp>
#include <redlock/export.hpp>
#include <redlock/nodes.hpp>

#include <memory>

namespace redlock {

namespace loop {
class Context;  // the state of an AsyncNodes, which its locks share
}

/// The connections of one event loop to the servers of one Nodes object. All functions must be called in the
/// loop (EventLoop says what that is). Below, a *lock* is an AsyncLock, AsyncSemaphore or AsyncLeader that
/// was made with this object.
///
/// The locks share one connection to each server. With LockOptions::fair, one of these servers has the queue
/// of a resource. All locks that wait in the queues of a server share one more connection to it. The
/// operations of one AsyncNodes make at most 512 rounds (lock.hpp) at the same time. Other rounds wait, in
/// the order in which they came. An operation makes no round while it pauses, or waits in a queue.
///
///     a round of    | waits at most until
///     --------------+---------------------------------------------------------
///     acquire_for() | `span` is over, or AsyncLock::cancel() is called
///     acquire()     | AsyncLock::cancel() is called
///     try_acquire() | AsyncLock::cancel() is called
///     extend()      | the validity is over; the result is then `lost`
///     release()     | (no limit)
///
/// A round in which an acquisition deletes its keys or leaves its queue counts as a round of release().
///
/// An AsyncNodes can also extend locks by itself, see loop_watchdog() in async_lock.hpp. It makes one round
/// at a time for this, which extends all locks that are due. This round does not count among the 512, and
/// does not wait for them.
///
/// After fork() the child may only destroy the object and its locks. In the child, this touches neither the
/// loop nor the servers.
class REDLOCK_EXPORT AsyncNodes {
public:
    /// Does no I/O, because connections are made when they are first needed. If `nodes` is not a RedisNodes,
    /// each round blocks the loop, which is good enough for tests only. `clock` must be the clock that
    /// `nodes` requires (Nodes::required_clock()): boot_clock() for a RedisNodes. Throws
    /// std::invalid_argument for another clock, and if `event_loop` serves another AsyncNodes already.
    ///
    /// The locks may outlive this object, see shut_down(). This is how long the arguments must exist:
    ///
    ///     argument              | must exist until
    ///     ----------------------+------------------------------------------------------
    ///     nodes (a RedisNodes)  | all locks are destroyed
    ///     nodes (another class) | all locks and this object are destroyed
    ///     event_loop            | shut_down() has returned, or this object is destroyed
    ///     clock                 | all locks and this object are destroyed, and
    ///                           | all terms of leaders (async_leader.hpp)
    ///     entropy               | all locks and this object are destroyed
    ///
    /// So a RedisNodes may be destroyed as soon as all locks are. If an operation of a destroyed lock is
    /// still under way, it goes on without the RedisNodes. Any thread may destroy the RedisNodes, but not
    /// while another thread shuts down or destroys an AsyncNodes of it, or ends or destroys an AsyncTerm
    /// (async_leader.hpp).
    AsyncNodes(Nodes& nodes, EventLoop& event_loop, Clock& clock = boot_clock(),
               Entropy& entropy = os_entropy());

    /// Calls shut_down(). Blocks for at most a millisecond. If the RedisNodes was destroyed before, blocks
    /// for at most one NodesOptions::node_timeout, to send the releases that are left (see shut_down()). Must
    /// not be called inside EventLoop::ready() or wake(), and so neither by a completion nor by another
    /// callback.
    ~AsyncNodes();
    AsyncNodes(const AsyncNodes&) = delete;
    AsyncNodes& operator=(const AsyncNodes&) = delete;

    /// Ends the use of the loop. Blocks for at most a millisecond. When this function has returned, the
    /// library has called EventLoop::forget() for each descriptor, and does not use the loop any more. A
    /// completion, LockOptions::on_lost or a std::stop_callback on lost() may call this function. A second
    /// call does nothing.
    ///
    /// - Operations: all operations end, and their completions are destroyed without a call. A function that
    ///   would begin an operation afterwards does nothing, and destroys its completion.
    /// - Locks: a lock that is held stays valid for its remaining time, and its queries can still be used. A
    ///   lock with loop_watchdog() (async_lock.hpp) is not extended any more. Therefore a stop is requested
    ///   on its lost(), but LockOptions::on_lost is not called.
    /// - Releases: this function writes releases to the sockets, and does not wait for the replies. It does
    ///   so for locks that were destroyed but are not released yet, and for keys of acquisitions and releases
    ///   that were under way. A lock whose extension was under way stays held. If a lock that is held is
    ///   destroyed after this function, its destructor writes its release in the same way.
    ///
    /// If the sockets do not accept all releases at once, or a server refuses one for now, the destructor of
    /// the RedisNodes sends the rest. It blocks for at most one NodesOptions::node_timeout. If the RedisNodes
    /// was destroyed before, the destructor of this object sends the rest, and blocks as long.
    void shut_down() noexcept;

    // The next two functions are for programs that keep a list with an AsyncNodes for each Nodes object.

    /// Returns true if `nodes` is the object with which this one was made. If that object was destroyed,
    /// returns false, even if `nodes` has its address now.
    bool are_of(const Nodes& nodes) const noexcept;

    /// Returns true if the RedisNodes and all locks are destroyed, and no operation of these locks is under
    /// way. This AsyncNodes is then of no use, and its owner can destroy it. Always returns false if `nodes`
    /// is not a RedisNodes.
    bool expired() const noexcept;

private:
    friend class AsyncLeader;
    friend class AsyncLock;

    std::shared_ptr<loop::Context> context_;
};

}  // namespace redlock
