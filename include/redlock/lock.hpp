// A lock on a resource, held on a majority of N independent Redis masters, the *nodes*.
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
// While valid() is true, no other client that follows the protocol (docs/protocol.md) holds the resource.
// (Several locks with LockOptions::shared can hold it together.) Three conditions must be met:
//
//   1. The clocks of the client and of the nodes run at the same rate, within LockOptions::drift_factor, and
//      nobody sets the clocks of the nodes.
//   2. No node loses the key before it expires, for example by a restart without persistence, by FLUSHALL or
//      by a failover. With NodesOptions::quarantine, a node that has lost keys does not take part until they
//      would have expired. (For a failover, see docs/guarantees.md.)
//   3. No node lies: if it grants a lock, it has stored the key.
//
// Work can outlast its lock: the ttl ends before the work, or the process is suspended right after it has
// called valid(), and continues when another client holds the lock. If late work would do damage, use
// LockOptions::fencing. Each holder then has a *fencing token*, a number that is larger than those of all
// earlier holders. The system that the work changes, such as a database, must reject a token that is smaller
// than the largest one that it has seen:
//
//     if (lock.acquire()) store.write(order, lock.fencing_token());
//
// If you do not know how long the work takes, use LockOptions::watchdog. A watchdog extends the lock while
// the lock is held. If it fails to do so, it requests a stop on the token that lost() returns.
//
// Words in this file:
//
//   majority      more than half of the configured nodes, whether they are up or not
//   round         one command to the nodes, and their answers. To acquire, a round asks one node after the
//                 other, unless NodesOptions::round says otherwise. All other rounds first send to all nodes
//                 that the round of the acquisition may have reached, and then await the answers. A node that
//                 has failed mostly gets only releases
//   node_timeout  the longest time that one node may take in a round: NodesOptions::node_timeout
//   validity      the time for which a holder may rely on the lock. It lasts for ttl − drift from the
//                 beginning of the round that acquired the lock. An extension can make it longer, or find
//                 that the lock is *lost*, which ends it. The drift (by default 1 % of the ttl + 2 ms)
//                 allows for clocks that differ
//
// Threads: a Lock belongs to one thread at a time. Different Locks may be used by different threads, even on
// the same resource, and may share one Nodes. If a lock with a watchdog is lost, each std::stop_callback on
// lost() runs in the thread that has found the loss: a thread of the watchdog, or that of extend(). Then
// LockOptions::on_lost runs in a thread of the watchdog. All these functions may release or destroy the lock,
// whichever thread it belongs to. A thread in a function of this library, or in a function that the library
// has called, must not be ended by pthread_cancel() or pthread_exit(): the process would end. A
// std::stop_token ends a wait.
//
// After fork() the lock belongs to the parent, and is free in the child.
//
// A lock has four states:
//
//   free         not acquired, or released
//   held         acquired, and the validity has not ended
//   lapsed       acquired, and the validity has ended without a release
//   unconfirmed  released, but too few nodes have confirmed it; can be released again, see release()
//
// What a function does depends on the state. "acquire" stands for all functions that acquire:
//
//              | free               | held                 | lapsed             | unconfirmed
//   acquire    | rounds, then held  | already_held, no I/O | releases, then     | releases, then
//              | or free            |                      | as free            | as free
//   extend     | not_held, no I/O   | a round, then held   | lost, no I/O       | not_held, no I/O
//              |                    | or lapsed            |                    |
//   release    | not_held, no I/O   | a round, then free   | a round, then      | a round, then free
//              |                    | or unconfirmed       | free; returns lost | or unconfirmed
//   unlock     | nothing            | sends a release,     | as held            | as held
//              |                    | then free            |                    |
//   valid      | false              | true                 | false              | false
//   remaining  | zero               | positive             | zero               | zero
//   owner      | empty              | 40 hex digits        | 40 hex digits      | 40 hex digits
//
// There are three exceptions. With LockOptions::fair, unlock() does what release() does. When the validity of
// an unconfirmed lock has ended, release() makes the lock free, and returns not_held without I/O. With
// LockOptions::margin, the watchdog reports a loss some time before the validity ends. In this time, the lock
// is held, but extend() returns `lost` without I/O.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/export.hpp>
#include <redlock/lease_view.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/resources.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

namespace redlock {

namespace detail {
enum class Acquires : bool;
}  // namespace detail

/// A lock. Its queries are the functions of LeaseView: valid(), remaining(), lost(), resource(), resources(),
/// owner() and fencing_token().
class REDLOCK_EXPORT Lock : public LeaseView {
public:
    /// Prepares a lock on one resource, or on several, as in {"a", "b"}. Does no I/O.
    ///
    /// The name of a resource *is* the Redis key on every node (any bytes, at most 512 MiB). It must not be
    /// the name of a key that an application uses for something else.
    ///
    /// A lock on several resources holds all of them or none. The order of the names does not matter, and
    /// locks that have resources in common cannot deadlock.
    ///
    /// `nodes`, `clock` and `entropy` must outlive the lock. Throws std::invalid_argument, with the name of
    /// the field, if the resources or an option cannot work.
    Lock(Nodes& nodes, ResourceList resources, LockOptions options = {}, Clock& clock = boot_clock(),
         Entropy& entropy = os_entropy());

    /// Releases the lock as unlock() does.
    ~Lock();

    /// Takes over the other lock. Afterwards `other` is free, but its functions that acquire fail with
    /// std::errc::invalid_argument until another lock is assigned to it.
    Lock(Lock&& other) noexcept = default;
    /// Releases the lock of this object as the destructor does, then takes over the other lock.
    Lock& operator=(Lock&& other) noexcept;

    // ---- Operations. They return runtime failures as results, and throw only for incorrect use.

    /// Makes up to LockOptions::retry.attempts attempts, with random pauses of at most retry.delay between
    /// them. An attempt asks the nodes in one round. If the attempt fails, a second round deletes its keys.
    ///
    /// Blocks at most attempts × (N × node_timeout + node_timeout + delay): the two rounds and the pause.
    /// (With Round::all_at_once, N is 1 here.) Three cases add to this time:
    ///
    /// - A lapsed or unconfirmed lock is first released as by unlock().
    /// - With LockOptions::fair, clients wait in a queue. The call can wait there for
    ///   LockOptions::queue_timeout, and then make one more attempt.
    /// - With LockOptions::fencing, an attempt can need further rounds of one node_timeout each. Usually it
    ///   needs none, and at most (N + 1) / 2 (rounded down): one if the nodes have counted different numbers
    ///   of holders, and one more for each wrong number, which only a minority may have.
    ///
    /// Errors: `held_by_other`, `no_quorum`, `validity_exhausted` (a majority granted too late),
    /// `already_held`, `cancelled`, or a code of the system (no entropy, no memory, no thread for the
    /// watchdog). After a failure no node that can be reached keeps a key of this call. If the connection to
    /// a node broke before the node answered, if memory runs out, or if very many releases to a node have no
    /// reply (docs/protocol.md, Release), the key can stay there for one ttl.
    Result acquire() { return acquire(std::stop_token{}); }

    /// Acquires as acquire() does, but ends with `cancelled` when a stop is requested on `stop`. A pause then
    /// ends at once, and an attempt ends within two node_timeouts.
    Result acquire(std::stop_token stop);

    /// Makes one attempt. Blocks as acquire() does with one attempt and without a pause. Never queues.
    Result try_acquire();

    /// Makes attempts until one succeeds, a retry is pointless (as after a wrong password), or `span` is
    /// over. Their number is not limited. Blocks for at most `span` plus one node_timeout, in which the last
    /// attempt deletes its keys. If memory runs out meanwhile, the deletion is tried again for one
    /// further node_timeout. Returns the outcome of the last complete attempt, or `deadline` if there was
    /// none. Makes no attempt if `span` is not positive.
    template <class Rep, class Period>
    Result acquire_for(std::chrono::duration<Rep, Period> span, std::stop_token stop = {}) {
        const auto deadline = deadline_after(now(), span);
        return acquire_by(deadline, std::move(stop));
    }

    /// Acquires as acquire_for() does, until an instant of any clock.
    template <class TheirClock, class Duration>
    Result acquire_until(std::chrono::time_point<TheirClock, Duration> until, std::stop_token stop = {}) {
        return acquire_for(time_left(until), std::move(stop));
    }

    /// Extends the lock in one round. The validity then ends ttl − drift after the start of this round, or at
    /// its old end if that is later. Blocks for at most one node_timeout. (With RedisNodes, each call can
    /// take a little longer, see Nodes::ask().)
    ///
    /// - `lost`: the validity has ended, or less than a majority of the nodes can still have the key. valid()
    ///   is false from now on. If there is a watchdog, the loss is reported (LockOptions::on_lost). But if it
    ///   was reported before (LockOptions::margin), valid() is unchanged.
    /// - `not_held`: there is nothing to extend.
    /// - Any other error, such as `no_quorum`: the remaining time is unchanged, and the call can be repeated.
    Result extend() { return extend(ttl()); }

    /// Extends with another ttl, this time only. Throws std::invalid_argument if the ttl cannot work.
    Result extend(std::chrono::milliseconds ttl);

    /// Releases the lock in one round. Blocks for at most one node_timeout, or two if the watchdog is
    /// extending the lock at that moment.
    ///
    /// - Success: the validity had not ended when the release began, and a majority has confirmed the
    ///   release.
    /// - `lost`: the validity had ended before, or less than a majority of the nodes could still have the
    ///   key. Keys of other clients are not touched.
    /// - `no_quorum`: no majority has confirmed the release. Call release() again, or let the keys expire.
    /// - `not_held`: there is nothing to release.
    ///
    /// In every case valid() is false from now on, and the lock is not extended any more. It is free then,
    /// except in one case: it is unconfirmed, and release() can be called again, if the validity has not
    /// ended by the end of the call, and the result is `no_quorum` or less than a majority has answered.
    /// (Fewer answers can also lead to `lost`: for example, a bare majority had the key, one of these nodes
    /// has lost it, and the others do not answer.)
    ///
    /// release(), unlock() and the destructor do not wait for callbacks, so a callback may call them. After
    /// they have returned, no stop is requested on lost(). But if the watchdog has found the loss before, its
    /// call of LockOptions::on_lost can still begin or be running.
    Result release() noexcept;

    // ---- The interface of std::timed_mutex (Cpp17TimedLockable), for std::unique_lock, std::scoped_lock and
    // std::lock.

    /// Acquires the lock, and waits without limit while other clients hold it. Throws Error if that fails:
    ///
    /// - retry.attempts attempts in a row have failed for another reason, such as too few nodes that answer.
    ///   If a retry is pointless, one such attempt is enough.
    /// - This Lock already holds the resource. The code of this error equals
    ///   std::errc::resource_deadlock_would_occur.
    void lock();
    /// Acquires as try_acquire() does, and returns whether the attempt was successful.
    bool try_lock() { return static_cast<bool>(try_acquire()); }

    /// Acquires as acquire_for() does, or as try_acquire() if `span` is not positive. Returns whether the
    /// lock was acquired.
    template <class Rep, class Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> span) {
        return static_cast<bool>(span > span.zero() ? acquire_for(span) : try_acquire());
    }

    /// Acquires as try_lock_for() does, until an instant of any clock.
    template <class TheirClock, class Duration>
    bool try_lock_until(std::chrono::time_point<TheirClock, Duration> until) {
        return try_lock_for(time_left(until));
    }

    /// Releases the lock without waiting for answers. The lock is then free. With LockOptions::fair, does
    /// what release() does. Otherwise blocks in three cases only:
    ///
    /// - Connections have to be made first: at most an eighth of node_timeout for all of them, which is
    ///   mostly enough for nodes that are up. After this time, the releases are sent in the background.
    /// - Another thread sends the commands of this one, too, and gets no processor: for up to an eighth of
    ///   node_timeout, and then for another eighth or 2 ms, whichever is longer.
    /// - The watchdog is extending the lock at that moment: at most one further node_timeout.
    void unlock() noexcept;

private:
    friend class Semaphore;
    friend class Leader;

    Lock(Nodes& nodes, std::vector<std::string> names, LockOptions options, Clock& clock, Entropy& entropy,
         detail::Acquires acquires);

    /// Returns the present instant of a clock. Clock has no static now().
    template <class TheirClock>
    auto now_of() const {
        if constexpr (std::is_same_v<TheirClock, Clock>)
            return now();
        else
            return TheirClock::now();
    }

    /// Returns how long it is until an instant of any clock; zero if the instant has passed or is NaN.
    /// Returns the longest duration if at least half of it, 146 years, is left. The seconds are compared as
    /// floating numbers, because nanoseconds cannot represent each instant of a clock that counts seconds.
    template <class TheirClock, class Duration>
    std::chrono::nanoseconds time_left(std::chrono::time_point<TheirClock, Duration> until) const {
        using std::chrono::nanoseconds;
        using Seconds = std::chrono::duration<double>;
        const auto now = now_of<TheirClock>();
        const auto left = Seconds{until.time_since_epoch()} - Seconds{now.time_since_epoch()};
        if (!(left > Seconds::zero())) return nanoseconds::zero();
        if (left >= Seconds{nanoseconds::max()} / 2) return nanoseconds::max();
        return std::chrono::ceil<nanoseconds>(until - now);
    }

    Result acquire_by(Clock::time_point deadline, std::stop_token stop);
    Result acquire_within(const algorithm::AcquireLimits& limits);
    /// Releases the current acquisition as unlock() does. Swallows every failure.
    void release_quietly() noexcept;
};

}  // namespace redlock
