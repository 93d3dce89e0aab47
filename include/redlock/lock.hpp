// A distributed lock on one resource over N independent Redis masters.
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
// What it promises, and what it cannot: while `valid()` is true no other client that follows the
// protocol holds the resource, provided that clocks run at the same rate within the drift factor and that no
// node forgets the key before its expiry (a restart without persistence, a FLUSHALL). The lock is a lease:
// it ends at `valid_until` by itself, whether the work is done or not. A process that pauses after it has
// looked at valid() can wake up after that, so what must never be done twice needs a check where it is done.
//
// With LockOptions::fencing there is a number to check, where the resource remembers the largest it has seen:
//
//     if (lock.acquire()) store.write(order, lock.fencing_token());
//
// With LockOptions::shared others that are shared may hold it too, and none that is not.
//
// With LockOptions::watchdog it is extended for as long as it is held, and lost() says when that failed.
//
// A Lock belongs to one thread at a time, its watchdog and a release() in LockOptions::on_lost excepted;
// different Locks, also on the same resource, may be used by any threads at once and may share one Nodes.
// After fork() the parent's lock stays the parent's: in the child it is not held, and destroying it there
// sends nothing.
//
// What each verb does in each state; "lapsed" was held, but its validity is over or its loss was reported;
// "unconfirmed" was released, but too few nodes have confirmed that, and its validity is not over:
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
// Where LockOptions::margin is set, a loss is reported that much before the validity ends: until then the
// lock is held as before, but extend() answers `lost` without I/O.
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
    /// A claim on a resource, or on several as one lock, {"a", "b"}: all of them or none, with one owner and
    /// one validity. The name of a resource *is* the Redis key on every node (any bytes, at most 512 MiB), so
    /// it must not be the name of a key that an application uses for something else. Their order does not
    /// matter, and what is named twice is locked once, so that locks that overlap exclude one another and
    /// cannot deadlock. No I/O. Throws std::invalid_argument naming the field that cannot work. `nodes`,
    /// `clock` and `entropy` must outlive it.
    Lock(Nodes& nodes, ResourceList resources, LockOptions options = {}, Clock& clock = boot_clock(),
         Entropy& entropy = os_entropy());

    /// Releases what is held, and swallows whatever happens meanwhile (rule B2). As unlock().
    ~Lock();

    Lock(Lock&& other) noexcept;
    /// Releases what is held first.
    Lock& operator=(Lock&& other) noexcept;

    // ---- Queries. No I/O: what they say follows from the clock and from what the verbs have learnt.

    /// Whether the lock may be counted on now. Once false it stays false for this acquisition (rule C4).
    bool valid() const noexcept;

    /// How long it may still be counted on; zero when it may not.
    std::chrono::nanoseconds remaining() const noexcept;

    /// Stopped when this acquisition is lost: when valid() turns false without a release(), or
    /// LockOptions::margin earlier. Call it after the acquisition: each has a token of its own. Without
    /// LockOptions::watchdog it is never stopped.
    std::stop_token lost() const;

    /// The resource; of several, the first in order.
    const std::string& resource() const noexcept;

    /// All of them, sorted and without repetition.
    Resources resources() const noexcept;

    /// The 40 hex digits that sign this acquisition on the nodes; empty when there is none. Fresh each time.
    std::string_view owner() const noexcept;

    /// The fencing token of this acquisition: a number larger than that of every earlier holder of any of the
    /// resources; 0 without LockOptions::fencing, and when there is none. The resource must refuse every
    /// access, reads too, with a number smaller than the largest it has seen.
    std::uint64_t fencing_token() const noexcept;

    // ---- Verbs. They return what happened and never throw for circumstances.

    /// Tries up to retry.attempts times, with a random pause in between (S20, S22). Blocks at most attempts ×
    /// (round + release + retry.delay), where a round is at most N × node_timeout and a release one
    /// node_timeout; with LockOptions::fair (attempts − 1) × retry.delay in the queue, and one round and
    /// release, more; with LockOptions::fencing, where nodes lag behind or refuse to count, up to N − quorum
    /// + 1 rounds more an attempt. Errors: held_by_other, no_quorum, validity_exhausted; already_held;
    /// cancelled; no entropy, no memory (system's code). After a failure nothing of it is left on any node
    /// that can be reached (rule A2).
    Result acquire() { return acquire(std::stop_token{}); }

    /// The same, given up when `stop` is stopped: at once during a pause, within one node_timeout during a
    /// round.
    Result acquire(std::stop_token stop);

    /// One attempt (S12-S17): blocks as acquire() with retry.attempts = 1 would.
    Result try_acquire();

    /// Tries until `span` is over, whatever retry.attempts says; at least once if it is positive. Returns
    /// within `span` and one node_timeout. Reports what the last complete attempt ran into, `deadline` if
    /// none was.
    template <class Rep, class Period>
    Result acquire_for(std::chrono::duration<Rep, Period> span, std::stop_token stop = {}) {
        const auto deadline = deadline_after(clock_->now(), span);
        return acquire_by(deadline, std::move(stop));
    }

    /// The same, until an instant of any clock; one that has passed is `deadline`, without a round.
    template <class TheirClock, class Duration>
    Result acquire_until(std::chrono::time_point<TheirClock, Duration> until, std::stop_token stop = {}) {
        return acquire_for(time_left(until), std::move(stop));
    }

    /// Puts the time that is left back to the whole ttl, in one round (S31). Blocks at most a round.
    /// no_quorum: the time that was left stands (rule C2), and it may be tried again. `lost`: a majority no
    /// longer has our key, or the validity is over; valid() is false from now on, and a
    /// watchdog stops lost(). Also
    /// `lost`, without I/O, where the loss was reported before, of which LockOptions::margin may be left.
    Result extend();

    /// The same with another ttl. Shorter than what is left changes nothing. A ttl that cannot work throws
    /// std::invalid_argument, as in the constructor.
    Result extend(std::chrono::milliseconds ttl);

    /// Releases on all nodes (S26). Blocks one node_timeout at most; two where the watchdog is in
    /// the middle of an extension. Success: a majority confirmed. `lost`: the lock had ended before; keys of
    /// others are left alone (rule B3). `no_quorum`: too few nodes answered; call it again, or let the keys
    /// expire after the ttl. In every case valid() is false from now on, and no extension is sent any more
    /// (rule B7). Before LockOptions::at_least is over the resource is not free then, but kept from
    /// everybody.
    ///
    /// Callbacks (rule C9): when release(), unlock() or the destructor has returned, LockOptions::on_lost
    /// does not begin any more, and lost() is not stopped any more. If on_lost began before, it may still be
    /// running in the watchdog's thread. These functions do not wait for callbacks. Therefore on_lost and a
    /// std::stop_callback on lost() may call them, and may also wait until another thread's call of them has
    /// returned. The C++ library calls several std::stop_callbacks on lost() one after another: a release()
    /// meanwhile does not hold back those whose turn comes later.
    Result release() noexcept;

    // ---- The std vocabulary: Cpp17TimedLockable, for std::unique_lock, std::scoped_lock, std::lock.

    /// Waits while others hold it, without bound: also for a key that was set without an expiry. Throws Error
    /// when it cannot be had: the nodes form no quorum in retry.attempts attempts, or this Lock holds it
    /// already (resource_deadlock_would_occur).
    void lock();

    bool try_lock() { return static_cast<bool>(try_acquire()); }

    /// As acquire_for; a span that is not positive is try_lock().
    template <class Rep, class Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> span) {
        return static_cast<bool>(span > span.zero() ? acquire_for(span) : try_acquire());
    }

    template <class TheirClock, class Duration>
    bool try_lock_until(std::chrono::time_point<TheirClock, Duration> until) {
        return try_lock_for(time_left(until));
    }

    /// Releases without waiting for answers. Blocks as release() while the watchdog extends, and if `fair`;
    /// otherwise an eighth of node_timeout at most, for a connection. If that takes longer, the next round
    /// with the node, a short-lived thread, or the destructor of the nodes sends the release once the
    /// connection is ready. What acquires the resource next in this process goes behind the release.
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

    /// How long until an instant of any clock; zero if it has passed, however long ago.
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
    std::shared_ptr<detail::LeaseState> state_;  // null when moved from; another one in a child of fork()
};

}  // namespace redlock
