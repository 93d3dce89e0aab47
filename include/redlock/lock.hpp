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
//   1. all clocks involved run at the same rate, within LockOptions::drift_factor, and
//   2. no node forgets the key before it expires (by a restart without persistence, or by FLUSHALL).
//
// The lock is a lease: it ends by itself when its validity is over, even if the work is not done. A process
// can be suspended right after it has called valid(), and continue when another client holds the lock. Work
// that must never be done twice therefore needs a second check in the system that it changes.
// LockOptions::fencing provides a number for this check (see fencing.hpp):
//
//     if (lock.acquire()) store.write(order, lock.fencing_token());
//
// LockOptions::shared makes a lock for readers: several of them can hold the resource at the same time, but
// never beside an exclusive lock. LockOptions::watchdog extends the lock for as long as it is held, and
// lost() reports when that was not possible.
//
// In this file, a *round* is one command to every node, and *node_timeout* is the time that one node may take
// in a round (NodesOptions::node_timeout). Each function states how long it can block.
//
// Threads: a Lock belongs to one thread at a time. There are two exceptions: its watchdog, and a release() in
// LockOptions::on_lost. Different Locks, even on the same resource, may be used by different threads and may
// share one Nodes.
//
// After fork() the lock still belongs to the parent. In the child it is not held, and its destructor sends
// nothing.
//
// What each function does depends on the state of the lock:
//
//   free         not held
//   held         acquired, and valid
//   lapsed       acquired, but its validity is over or its loss was reported
//   unconfirmed  released, but too few nodes have confirmed it, and its validity is not over
//
//              | free               | held                 | lapsed             | unconfirmed
//   acquire*   | rounds, then held  | already_held, no I/O | releases, then     | releases, then
//              | or free            |                      | as free            | as free
//   extend     | not_held, no I/O   | a round, then held   | lost, no I/O       | not_held, no I/O
//   release    | not_held, no I/O   | a round, then free   | a round, then      | a round, then free
//              |                    | or unconfirmed       | free; reports lost | or unconfirmed
//   valid      | false              | true                 | false              | false
//   owner      | empty              | 40 hex digits        | 40 hex digits      | 40 hex digits
//   destructor | nothing            | releases             | releases           | releases
//
// With LockOptions::margin a loss is reported that much before the validity ends. The lock stays in the state
// "held" until the end, but extend() returns `lost` without I/O.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/error.hpp>
#include <redlock/export.hpp>
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
}

class Semaphore;

class REDLOCK_EXPORT Lock {
public:
    /// Prepares a lock on one resource, or on several as one lock, as in {"a", "b"}: all of them or none,
    /// with one owner and one validity. Does no I/O.
    ///
    /// The name of a resource *is* the Redis key on every node (any bytes, at most 512 MiB). It must not be
    /// the name of a key that an application uses for something else. The order of several resources does not
    /// matter, and a resource that is named twice is locked once. Locks with common resources therefore
    /// exclude each other and cannot deadlock.
    ///
    /// `nodes`, `clock` and `entropy` must outlive the lock. Throws std::invalid_argument, with the name of
    /// the field, if the resources or an option cannot work.
    Lock(Nodes& nodes, ResourceList resources, LockOptions options = {}, Clock& clock = boot_clock(),
         Entropy& entropy = os_entropy());

    /// Releases the lock if it is held, as unlock() does. Never throws, whatever happens meanwhile.
    ~Lock();

    Lock(Lock&& other) noexcept;
    /// Releases the lock that this object holds, then takes over the other one.
    Lock& operator=(Lock&& other) noexcept;

    // ---- Queries. They do no I/O. They use the clock and the outcomes of earlier operations.

    /// Returns true while no other client can hold the resource. Once it has returned false, it stays false
    /// for this acquisition.
    bool valid() const noexcept;

    /// Returns how long valid() stays true unless the lock is extended or released; zero if it is false.
    std::chrono::nanoseconds remaining() const noexcept;

    /// Returns a token on which a stop is requested when this acquisition is lost: when valid() becomes false
    /// without a release, or LockOptions::margin earlier. Each acquisition has a token of its own, so call
    /// this function after the acquisition. Without LockOptions::watchdog a stop is never requested.
    std::stop_token lost() const;

    /// Returns the resource; if there are several, the first in sorted order.
    const std::string& resource() const noexcept;

    /// Returns all resources, sorted and each once.
    Resources resources() const noexcept;

    /// Returns the 40 hex digits that are the value of the key on the nodes; empty if the lock is free. Each
    /// acquisition has a new owner. The view is valid until the next acquisition.
    std::string_view owner() const noexcept;

    /// Returns the fencing token of this acquisition, which is larger than the token of every earlier holder
    /// of any of the resources. Returns 0 without LockOptions::fencing, and if the lock is free. The
    /// protected system must reject every access, reads included, whose token is smaller than the largest
    /// that it has seen. LockOptions::shared describes the rule for readers and writers.
    std::uint64_t fencing_token() const noexcept;

    // ---- Operations. They return runtime failures as results, and throw only for incorrect use.

    /// Makes up to retry.attempts attempts, with a random pause between two of them.
    ///
    /// Blocks at most attempts × (round + release + retry.delay). A round takes at most N × node_timeout, and
    /// the release of a failed attempt one node_timeout. Two options add to this time:
    ///
    /// - LockOptions::fair: up to (attempts − 1) × retry.delay in the queue, one round and one release.
    /// - LockOptions::fencing: up to N − quorum + 1 rounds of one node_timeout for each attempt, if nodes lag
    ///   behind with their counts or refuse to count.
    ///
    /// Errors: `held_by_other`, `no_quorum`, `validity_exhausted`, `already_held`, `cancelled`, or a code of
    /// the system (no entropy, no memory, no thread for the watchdog). After a failure no reachable node
    /// keeps a key of this call.
    Result acquire() { return acquire(std::stop_token{}); }

    /// Acquires as acquire() does, but gives up with `cancelled` when a stop is requested. A pause ends at
    /// once. A round asks no further node, but waits until the nodes that it has already asked have answered
    /// or their node_timeout is over. The release of the attempt then takes at most one more node_timeout.
    Result acquire(std::stop_token stop);

    /// Makes one attempt. Blocks for one round and one release at most, as acquire() with retry.attempts = 1.
    Result try_acquire();

    /// Makes attempts until `span` is over, whatever retry.attempts says. Makes at least one attempt if
    /// `span` is positive. Blocks for at most `span` plus one node_timeout. Returns the outcome of the last
    /// complete attempt, or `deadline` if no attempt was complete.
    template <class Rep, class Period>
    Result acquire_for(std::chrono::duration<Rep, Period> span, std::stop_token stop = {}) {
        const auto deadline = deadline_after(clock_->now(), span);
        return acquire_by(deadline, std::move(stop));
    }

    /// Makes attempts until an instant of any clock, as acquire_for() does. Returns `deadline` without an
    /// attempt if that instant has passed.
    template <class TheirClock, class Duration>
    Result acquire_until(std::chrono::time_point<TheirClock, Duration> until, std::stop_token stop = {}) {
        return acquire_for(time_left(until), std::move(stop));
    }

    /// Resets the remaining time to the full ttl, in one round to all nodes at once. Blocks for at most one
    /// node_timeout. Never shortens the remaining time.
    ///
    /// - `lost`: a majority no longer has the key, or the validity is over. valid() is false from now on. If
    ///   the lock has a watchdog, a stop is requested on lost(), and the watchdog calls on_lost.
    /// - `lost` without I/O: the loss was reported before. With LockOptions::margin, valid() can still be
    ///   true.
    /// - `not_held`: there is nothing to extend.
    /// - Any other error, such as `no_quorum`: the remaining time is as before, and the call can be repeated.
    Result extend();

    /// Extends with another ttl. A ttl that is shorter than the remaining time changes nothing. Throws
    /// std::invalid_argument for a ttl that the constructor would reject.
    Result extend(std::chrono::milliseconds ttl);

    /// Releases the lock on all nodes. Blocks for at most one node_timeout, or two if the watchdog is just
    /// extending the lock.
    ///
    /// - Success: a majority has confirmed the release.
    /// - `lost`: the lock had ended before. Keys of other clients are not touched.
    /// - `no_quorum`: too few nodes have answered. Call release() again, or let the keys expire after the
    ///   ttl.
    /// - `not_held`: there is nothing to release.
    ///
    /// In every case valid() is false from now on, and no extension is sent any more. If the minimum hold
    /// time (LockOptions::at_least) is not over, the resource does not become free yet: nobody can acquire it
    /// until then.
    ///
    /// Callbacks: when release(), unlock() or the destructor has returned, LockOptions::on_lost does not
    /// begin any more, and no stop is requested on lost() any more. If on_lost began before, it may still be
    /// running in the watchdog's thread. These functions do not wait for callbacks. Therefore on_lost and a
    /// std::stop_callback on lost() may call them, and may also wait until another thread's call of them has
    /// returned. If there are several std::stop_callbacks on lost(), the C++ library calls them one after
    /// another. A release() during the first does not prevent the calls of the later ones.
    Result release() noexcept;

    // ---- The interface of std::timed_mutex (Cpp17TimedLockable), for std::unique_lock, std::scoped_lock and
    // std::lock.

    /// Acquires the lock, and waits without limit while others hold it, even for a key that was set without
    /// an expiry. Throws Error if retry.attempts attempts fail for another reason, such as too few nodes, or
    /// if this Lock already holds the resource. The code of the second error equals
    /// std::errc::resource_deadlock_would_occur.
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

    /// Releases the lock without waiting for the replies.
    ///
    /// Blocks for at most an eighth of node_timeout if a connection must be made. A release whose connection
    /// takes longer stays queued, and is sent when the connection is ready. This is done by the next round
    /// with the node, by a short-lived thread, or by the destructor of the nodes. If this process acquires
    /// the resource again meanwhile, it sends the SET behind the release on the same connection, where that
    /// is possible.
    ///
    /// Blocks as long as release() does with LockOptions::fair, and while the watchdog is just extending the
    /// lock.
    void unlock() noexcept;

private:
    friend class Semaphore;
    friend class Leader;

    template <class TheirClock>
    auto now_of() const {
        if constexpr (std::is_same_v<TheirClock, Clock>)
            return clock_->now();
        else
            return TheirClock::now();
    }

    /// Returns how long it is until an instant of any clock; zero if that instant has passed, however long
    /// ago.
    template <class TheirClock, class Duration>
    auto time_left(std::chrono::time_point<TheirClock, Duration> until) const {
        const auto now = now_of<TheirClock>();
        using Left = decltype(until - now);
        return until > now ? until - now : Left::zero();
    }

    Result acquire_by(Clock::time_point deadline, std::stop_token stop);
    Result acquire(const algorithm::AcquireLimits& limits);
    Result acquire_anew(const algorithm::AcquireLimits& limits);
    enum class Answers : bool { not_awaited, awaited };
    Result release(Answers answers) noexcept;
    Result release(std::uint64_t acquisition, Answers answers);
    void release_quietly() noexcept;
    bool in_owning_process() const noexcept;

    Nodes* nodes_;
    Clock* clock_;
    Entropy* entropy_;
    LockOptions options_;
    std::shared_ptr<detail::LeaseState> state_;  // null if moved from; a new one in a child of fork()
};

}  // namespace redlock
