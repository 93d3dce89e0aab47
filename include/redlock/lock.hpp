// A distributed lock on a resource, held on a majority of N independent Redis masters.
//
//     redlock::RedisNodes nodes{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
//     redlock::Lock lock{nodes, "orders:42", {.ttl = 10s}};
//
//     if (auto result = lock.acquire()) {
//         charge(order);            // lock.remaining() says how long is left
//         (void)lock.release();     // also done by the destructor
//     } else {
//         log(result.message());
//     }
//
// While valid() is true, no other client that follows the protocol holds the resource, provided that
//
//   1. all clocks involved run at the same rate, within LockOptions::drift_factor, and nobody steps the
//      clocks of the nodes, and
//   2. no node forgets the key before it expires, as after a restart without persistence, FLUSHALL or a
//      failover. NodesOptions::quarantine protects from that.
//
// The lock is a lease: it ends by itself when its validity is over, even if the work is not done. A process
// can be suspended right after it has called valid(), and continue when another client holds the lock. Work
// that must never be done twice therefore needs a second check in the system that it changes.
// LockOptions::fencing provides a number for this check (see fencing.hpp):
//
//     if (lock.acquire()) store.write(order, lock.fencing_token());
//
// LockOptions::shared makes a lock for readers: several of them can hold the resource at the same time, but
// never beside an exclusive lock. A Watchdog (LockOptions::watchdog) extends the lock for as long as it is
// held. If the watchdog cannot extend the lock, it requests a stop on the token that lost() returns.
//
// In this file, a *round* sends one command for a lock to the nodes, and collects their votes on it.
// *node_timeout* is the time that one node may take in a round (NodesOptions::node_timeout). Each function
// states how long it can block.
//
// Threads: a Lock belongs to one thread at a time. There are two exceptions. The watchdog extends the lock in
// a thread of its own. The callbacks that the watchdog calls (LockOptions::on_lost, and a std::stop_callback
// on lost()) may release or destroy the lock. Different Locks, even on the same resource, may be used by
// different threads and may share one Nodes.
//
// After fork() the lock still belongs to the parent. In the child the lock is free, and the destructor of the
// lock sends nothing.
//
// What each function does depends on the state of the lock:
//
//   free         not acquired, or released
//   held         acquired, and its validity has not ended
//   lapsed       acquired, and its validity has ended without a release; extend() and release() return `lost`
//   unconfirmed  released, but fewer than a majority of the nodes have confirmed the release
//
// In the table, "acquire" stands for all functions that acquire the lock, and (1) and (2) for the notes
// below.
//
//              | free               | held                 | lapsed             | unconfirmed
//   acquire    | rounds, then held  | already_held, no I/O | releases, then     | releases, then
//              | or free            |                      | as free            | as free
//   extend     | not_held, no I/O   | a round, then held   | lost, no I/O       | not_held, no I/O
//              |                    | or lapsed (1)        |                    |
//   release    | not_held, no I/O   | a round, then free   | a round, then      | a round, then free
//              |                    | or unconfirmed       | free; returns lost | or unconfirmed
//   valid      | false              | true                 | false              | false
//   remaining  | zero               | positive             | zero               | zero
//   owner      | empty (2)          | 40 hex digits        | 40 hex digits      | 40 hex digits
//   destructor | nothing            | releases             | releases           | releases
//
// The validity ends at an instant that each acquisition or extension computes (ttl − drift after its start).
// It ends earlier if an extension finds that so many nodes have lost the key that the remaining nodes are no
// majority.
//
// (1) A watchdog that cannot extend the lock reports the loss before the validity would end: by
// LockOptions::margin + 5 ms, as LockOptions::on_lost describes. Without a margin, the validity ends with the
// report, so the lock lapses a little early. With a margin, the lock stays held and valid until its validity
// ends, but from the report on, extend() returns `lost` without I/O.
//
// (2) An unconfirmed lock becomes free at the instant at which its validity would have ended, because the
// keys expire about then. owner() and fencing_token() of such a free lock keep their values until the next
// call of release() or of a function that acquires.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/error.hpp>
#include <redlock/export.hpp>
#include <redlock/lease.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/resources.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace redlock {

namespace algorithm {
struct AcquireLimits;
}
namespace detail {
class LeaseState;
struct Acquisition;
enum class Acquires : bool;
}  // namespace detail

class Semaphore;

class REDLOCK_EXPORT Lock {
public:
    /// Prepares a lock on one resource, or one lock on several resources, as in {"a", "b"}. Does no I/O.
    ///
    /// The name of a resource *is* the Redis key on every node (any bytes, at most 512 MiB). It must not be
    /// the name of a key that an application uses for something else.
    ///
    /// A lock on several resources holds all of them or none, with one owner and one validity. The order of
    /// the names does not matter, and a resource that is named twice is locked once. Two locks that have a
    /// resource in common exclude each other. They cannot deadlock, because each node grants all resources of
    /// a lock or none.
    ///
    /// `nodes`, `clock` and `entropy` must outlive the lock. boot_clock() also counts the time during which
    /// the machine is suspended. Throws std::invalid_argument, with the name of the field, if the resources
    /// or an option cannot work.
    Lock(Nodes& nodes, ResourceList resources, LockOptions options = {}, Clock& clock = boot_clock(),
         Entropy& entropy = os_entropy());

    /// Releases the lock as unlock() does, unless the lock is free. Never throws.
    ~Lock();

    /// Takes over the other lock. Afterwards `other` behaves like a free lock, except that it acquires
    /// nothing: its functions that acquire return std::errc::invalid_argument, or throw it (lock()). Another
    /// lock can be assigned to it.
    Lock(Lock&& other) noexcept;
    /// Releases the lock of this object as the destructor does, then takes over the other lock.
    Lock& operator=(Lock&& other) noexcept;

    // ---- Queries. They do no I/O. They use the clock and the outcomes of earlier operations.

    /// Returns true while this lock is held. Under the conditions at the top of this file, no other client
    /// holds the resource then; if the lock is shared, no exclusive lock does. Once valid() has returned
    /// false, it stays false for this acquisition.
    bool valid() const noexcept;

    /// Returns how long valid() stays true unless the lock is extended or released; zero if valid() is false.
    std::chrono::nanoseconds remaining() const noexcept;

    /// Returns a token on which a stop is requested when the loss of this acquisition is reported.
    /// LockOptions::on_lost says when that is. Each acquisition has a token of its own, so call this function
    /// after the acquisition. If the lock is free, the token is that of the last acquisition. Without
    /// LockOptions::watchdog a stop is never requested.
    std::stop_token lost() const;

    /// Returns the resource; if there are several, the first in sorted order.
    const std::string& resource() const noexcept;

    /// Returns all resources, sorted and each once.
    Resources resources() const noexcept;

    /// Returns the owner: 40 hex digits that identify this acquisition on the nodes. They are the value of
    /// the key, or the entry of a reader if the lock is shared. Returns an empty view if the lock is free,
    /// except after it was unconfirmed (see the states above). The view is valid until the next acquisition.
    std::string_view owner() const noexcept;

    /// Returns the fencing token of this acquisition, which is larger than the token of every earlier holder
    /// of any of the resources. Returns 0 without LockOptions::fencing. Also returns 0 if the lock is free,
    /// except after it was unconfirmed (see the states above). The protected system must reject every access,
    /// reads included, whose token is smaller than the largest that it has seen. If some of the locks are
    /// shared, another rule takes the place of this one: see LockOptions::shared.
    std::uint64_t fencing_token() const noexcept;

    // ---- Operations. They return runtime failures as results, and throw only for incorrect use.

    /// Makes up to `attempts` attempts (LockOptions::retry). Before each attempt but the first, pauses for a
    /// random time, which is at most `delay` (also of LockOptions::retry).
    ///
    /// Blocks at most attempts × (round + release + delay). A round takes at most N × node_timeout, because
    /// it may ask the nodes one after another. The release of a failed attempt goes to all nodes at once, and
    /// takes at most one node_timeout. Three things add to this time:
    ///
    /// - If the lock is lapsed or unconfirmed, it is first released, as unlock() does.
    /// - LockOptions::fair: up to LockOptions::queue_timeout in the queue. When this time is over, the
    ///   function makes a last attempt, which takes one round and one release.
    /// - LockOptions::fencing: up to N − quorum + 1 rounds of one node_timeout for each attempt. Each node
    ///   counts the holders of a resource. Such a round raises the counts of nodes that have counted fewer
    ///   holders than other nodes (see fencing.hpp). Each round after the first leaves out at least one more
    ///   node, whose count was wrong, and the attempt fails when the other nodes are no quorum.
    ///
    /// Errors: `held_by_other`, `no_quorum`, `validity_exhausted` (a majority granted too late),
    /// `already_held`, `cancelled`, or a code of the system (no entropy, no memory, no thread for the
    /// watchdog). After a failure no reachable node keeps a key of this call.
    Result acquire() { return acquire(std::stop_token{}); }

    /// Acquires as acquire() does, but gives up with `cancelled` when a stop is requested on `stop`. A pause
    /// ends at once. A round asks no further node, but waits until the nodes that it has already asked have
    /// answered or their node_timeout is over. The release of the attempt then takes at most one more
    /// node_timeout.
    Result acquire(std::stop_token stop);

    /// Makes one attempt. Blocks as acquire() with one attempt, but without a pause, and never waits in the
    /// queue.
    Result try_acquire();

    /// Makes attempts until `span` is over, whatever the number in LockOptions::retry. Makes at least one
    /// attempt if `span` is positive, and otherwise returns `deadline`. The end of `span` also ends a round
    /// that is under way. The release of that attempt takes at most one more node_timeout. Returns the
    /// outcome of the last complete attempt, or `deadline` if there was none.
    template <class Rep, class Period>
    Result acquire_for(std::chrono::duration<Rep, Period> span, std::stop_token stop = {}) {
        const auto deadline = deadline_after(clock_->now(), span);
        return acquire_by(deadline, std::move(stop));
    }

    /// Makes attempts until an instant of any clock, as acquire_for() does. Returns `deadline` without an
    /// attempt if the instant has passed.
    template <class TheirClock, class Duration>
    Result acquire_until(std::chrono::time_point<TheirClock, Duration> until, std::stop_token stop = {}) {
        return acquire_for(time_left(until), std::move(stop));
    }

    /// Resets the remaining time to the full ttl, in one round. The round goes at once to each node to which
    /// the acquisition sent at least one byte, because these nodes may hold the key. Blocks for at most one
    /// node_timeout. Never shortens the remaining time.
    ///
    /// - `lost`: the validity has ended, or the nodes that can still have the key are no longer a majority.
    ///   valid() is false from now on. If the lock has a watchdog, a stop is requested on lost(), and the
    ///   watchdog calls on_lost.
    /// - `lost` as well if the watchdog has already reported the loss. With LockOptions::margin, valid() can
    ///   still be true then.
    /// - `not_held`: there is nothing to extend.
    /// - Any other error, such as `no_quorum`: the remaining time is unchanged, and the call can be repeated.
    Result extend() { return extend(options_.ttl); }

    /// Extends with another ttl. If it is shorter than the remaining time, the round is made, but the
    /// remaining time stays as it is. The next extension of a watchdog uses LockOptions::ttl again. Throws
    /// std::invalid_argument for a ttl that the constructor would reject.
    Result extend(std::chrono::milliseconds ttl);

    /// Releases the lock on all nodes that may hold its key. Blocks for at most one node_timeout. If the
    /// watchdog is extending the lock at that moment, first waits for the end of that extension, which takes
    /// at most one more node_timeout.
    ///
    /// - Success: the validity had not ended before the call, and a majority of the nodes has confirmed the
    ///   release.
    /// - `lost`: the validity had ended before the call, or so many nodes replied that they no longer had the
    ///   key that the other nodes are no majority. Keys of other clients are not touched.
    /// - `no_quorum`: none of the above, because too many nodes gave no usable reply. Call release() again,
    ///   or let the keys expire after the ttl.
    /// - `not_held`: there is nothing to release.
    ///
    /// In every case valid() is false from now on, and no extension is sent any more. If the minimum hold
    /// time (LockOptions::min_hold) is not over, nobody can acquire the resource until it is over.
    ///
    /// Callbacks: after release(), unlock() or the destructor has returned, no stop is requested on lost().
    /// LockOptions::on_lost can still begin, or be running in the watchdog's thread, but only if the watchdog
    /// had decided to call it before the return.
    ///
    /// release(), unlock() and the destructor do not wait for callbacks. Therefore on_lost and a
    /// std::stop_callback on lost() may call these three functions. Such a callback may also wait for another
    /// thread that calls one of these functions: this causes no deadlock. If there are several
    /// std::stop_callbacks on lost(), the C++ library calls them one after another. A release() in the first
    /// callback does not prevent the calls of the later ones.
    Result release() noexcept { return release(Answers::awaited); }

    // ---- The interface of std::timed_mutex (Cpp17TimedLockable), for std::unique_lock, std::scoped_lock and
    // std::lock.

    /// Acquires the lock, and waits without limit while other clients hold it. If somebody has set the key
    /// without an expiry, lock() therefore blocks for ever. Throws Error in two cases:
    ///
    /// - Attempts have failed for another reason, such as too few nodes that answer. As many must have failed
    ///   in total as LockOptions::retry has attempts, or one if a further attempt could not succeed.
    /// - This Lock already holds the resource. The code of this error equals
    ///   std::errc::resource_deadlock_would_occur.
    void lock();
    /// Makes one attempt, as try_acquire() does, and returns whether it was successful.
    bool try_lock() { return static_cast<bool>(try_acquire()); }

    /// Acquires as acquire_for() does, and returns whether it was successful. Makes one attempt if `span` is
    /// not positive.
    template <class Rep, class Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> span) {
        return static_cast<bool>(span > span.zero() ? acquire_for(span) : try_acquire());
    }

    /// Acquires as try_lock_for() does, until an instant of any clock.
    template <class TheirClock, class Duration>
    bool try_lock_until(std::chrono::time_point<TheirClock, Duration> until) {
        return try_lock_for(time_left(until));
    }

    /// Releases the lock without waiting for the replies. It does wait in three cases:
    ///
    /// - If a connection has to be made first, waits for it, but at most for an eighth of node_timeout. A
    ///   release whose connection takes longer stays queued. When the connection is ready, the release is
    ///   sent by the next round with the node, by a short-lived thread, or by the destructor of the nodes,
    ///   whichever comes first.
    /// - With LockOptions::fair, waits for the replies and blocks as long as release() does, because the
    ///   replies say whether other clients are waiting.
    /// - If the watchdog is extending the lock at that moment, first waits for the end of that extension,
    ///   which takes at most one more node_timeout.
    ///
    /// If this process acquires the resource again before the release has arrived, the command that makes the
    /// new key (a SET) could find the key of the released lock, and be refused. Therefore the SET is normally
    /// sent behind the release on the same connection.
    void unlock() noexcept { (void)release(Answers::not_awaited); }

private:
    friend class Semaphore;
    friend class Leader;

    Lock(Nodes& nodes, std::vector<std::string> names, LockOptions options, Clock& clock, Entropy& entropy,
         detail::Acquires acquires);

    /// Returns the present instant of a clock. Clock has no static now(), so its instant comes from clock_.
    template <class TheirClock>
    auto now_of() const {
        if constexpr (std::is_same_v<TheirClock, Clock>)
            return clock_->now();
        else
            return TheirClock::now();
    }

    /// Returns how long it is until an instant of any clock; zero if that instant has passed. There is no
    /// overflow, even for the earliest instant of a clock.
    template <class TheirClock, class Duration>
    auto time_left(std::chrono::time_point<TheirClock, Duration> until) const {
        const auto now = now_of<TheirClock>();
        using Left = decltype(until - now);
        return until > now ? until - now : Left::zero();
    }

    /// Returns the current acquisition. The returned object stays valid after this lock was destroyed.
    detail::Acquisition acquisition() const;
    Result acquire_by(Clock::time_point deadline, std::stop_token stop);
    /// Calls acquire_anew(), and returns an error if there is no memory.
    Result acquire(const algorithm::AcquireLimits& limits);
    /// Releases what an earlier acquisition may have left on the nodes, then acquires.
    Result acquire_anew(const algorithm::AcquireLimits& limits);
    /// Acquire all resources, or one of them.
    Result acquire_all(const algorithm::AcquireLimits& limits, Lease& lease);
    Result acquire_one(const algorithm::AcquireLimits& limits, Lease& lease);
    /// Releases what an earlier acquisition may have left on the nodes. The lock is free afterwards.
    void forget_earlier();
    /// Stores this lease as the current acquisition, and gives it to the watchdog. Returns `result`, or an
    /// error if no thread is available. `lost` is the source behind lost().
    Result begin(const Lease& lease, std::stop_source lost, Result result);
    /// Whether a release waits for the replies of the nodes.
    enum class Answers : bool { not_awaited, awaited };
    /// Releases the current acquisition.
    Result release(Answers answers) noexcept;
    /// Releases the acquisition with this number, unless it has ended.
    Result release(std::uint64_t number, Answers answers);
    /// Releases without waiting for the replies, unless the lock is free. Swallows every failure.
    void release_quietly() noexcept;
    /// Returns true if state_ exists and was made by this process: false in a child of fork(), and also if
    /// the lock was moved from.
    bool in_owning_process() const noexcept;

    Nodes* nodes_;
    Clock* clock_;
    Entropy* entropy_;
    LockOptions options_;
    std::shared_ptr<detail::LeaseState> state_;  // null if moved from; a new one in a child of fork()
};

}  // namespace redlock
