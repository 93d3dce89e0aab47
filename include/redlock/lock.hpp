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
// What it promises, and what it cannot: while `valid()` is true no other client that plays by the same
// rules holds the resource, provided that clocks run at the same rate within the drift factor and that no
// node forgets the key before its expiry (a restart without persistence, a FLUSHALL). The lock is a lease:
// it ends at `valid_until` by itself, whether the work is done or not. A process that pauses after it has
// looked at valid() can wake up after that, so what must never be done twice needs a check where it is done.
//
// With LockOptions::fencing there is a number to check, where the resource remembers the largest it has seen:
//
//     if (lock.acquire()) store.write(order, lock.fencing_token());
//
// With LockOptions::watchdog it is extended for as long as it is held, and lost() tells when that failed.
//
// A Lock belongs to one thread at a time, its watchdog excepted; different Locks, also on the same resource,
// may be used by any threads at once and may share one Nodes. After fork() the parent's lock stays the
// parent's: in the child it is not held, and destroying it there sends nothing.
//
// What each verb does in each state; "lapsed" is held once, but past its validity or told to be lost;
// "unconfirmed" is released, but too few nodes have answered, and the ttl is not over:
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
#pragma once

#include <redlock/algorithm.hpp>
#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/lease.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/process.hpp>
#include <redlock/resources.hpp>
#include <redlock/result.hpp>
#include <redlock/watch.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock {

class Lock {
public:
    /// A claim on a resource, whose name is used as the Redis key as it is (any bytes, 1 to 512 MiB), or on
    /// several as one lock, {"a", "b"}: all of them or none, with one owner and one validity. Their order
    /// does not matter, and what is named twice is locked once, so that locks that overlap exclude one
    /// another and cannot deadlock. No I/O. Throws std::invalid_argument naming the field that cannot work.
    /// `nodes`, `clock` and `entropy` must outlive it.
    Lock(Nodes& nodes, ResourceList resources, LockOptions options = {}, Clock& clock = boot_clock(),
         Entropy& entropy = os_entropy())
        : nodes_(&nodes),
          clock_(&clock),
          entropy_(&entropy),
          resources_(detail::checked_resources(std::move(resources).take())),
          options_(std::move(options)) {
        check(options_, nodes.node_timeout(), nodes.quarantine());
        if (auto* const required = nodes.required_clock(); required && required != &clock)
            detail::refuse("clock", "another than that of the nodes",
                           "be the same: deadlines are instants of it");
        if (options_.watchdog && &options_.watchdog->clock() != &clock)
            detail::refuse("LockOptions::watchdog", "made for another clock", "go by the clock of the lock");
        watch_ = new_watch();
    }

    /// Releases what is held, and swallows whatever happens meanwhile (rule B2). Blocks as release() does.
    ~Lock() { let_go(); }

    Lock(Lock&& other) noexcept
        : nodes_(other.nodes_),
          clock_(other.clock_),
          entropy_(other.entropy_),
          resources_(std::exchange(other.resources_, {})),
          options_(std::move(other.options_)),
          lease_(std::exchange(other.lease_, {})),
          watch_(std::move(other.watch_)),
          process_(other.process_) {}

    /// Releases what is held first.
    Lock& operator=(Lock&& other) noexcept {
        if (this == &other) return *this;
        let_go();
        nodes_ = other.nodes_;
        clock_ = other.clock_;
        entropy_ = other.entropy_;
        resources_ = std::exchange(other.resources_, {});
        options_ = std::move(other.options_);
        lease_ = std::exchange(other.lease_, {});
        watch_ = std::move(other.watch_);
        process_ = other.process_;
        return *this;
    }

    // ---- Questions. No I/O: they know what the clock says and what the verbs were told, no more.

    /// Whether the lock may be counted on now. Once false it stays false for this acquisition (rule C4).
    bool valid() const noexcept {
        const auto now = clock_->now();  // before the lease, see Watch::commit()
        return here() && lease().valid_at(now);
    }

    /// How long it may still be counted on; zero when it may not.
    std::chrono::nanoseconds remaining() const noexcept {
        if (!here()) return std::chrono::nanoseconds::zero();
        const auto now = clock_->now();
        const auto lease = this->lease();
        return lease.valid_at(now) ? lease.valid_until - now : std::chrono::nanoseconds::zero();
    }

    /// Stopped when this acquisition is lost: when valid() turns false without a release(). To be asked for
    /// after the acquisition. Without LockOptions::watchdog nobody stops it.
    std::stop_token lost() const { return watch_ && here() ? watch_->lost() : std::stop_token{}; }

    /// The resource; of several, the first in order.
    const std::string& resource() const noexcept {
        static const std::string none;  // moved from
        return resources_.empty() ? none : resources_.front();
    }

    /// All of them, sorted and without repetition.
    Resources resources() const noexcept { return resources_; }

    /// The 40 hex digits that sign this acquisition on the nodes; empty when there is none. Fresh each time.
    std::string_view owner() const noexcept { return here() ? signature().owner.view() : std::string_view{}; }

    /// The number of this acquisition, larger than that of every earlier holder of any of the resources; 0
    /// without LockOptions::fencing, and when there is none. Whoever it is shown to must refuse smaller ones
    /// than the largest that was shown before.
    std::uint64_t fencing_token() const noexcept { return here() ? signature().fencing_token : 0; }

    // ---- Verbs. They return what happened and never throw for circumstances.

    /// Tries up to retry.attempts times, with a random pause in between (S20, S22). Blocks at most attempts ×
    /// (round + release + retry.delay), where a round is at most N × node_timeout and a release one
    /// node_timeout. Errors: held_by_other, no_quorum, validity_exhausted; already_held; cancelled; no
    /// entropy (system's code). After a failure nothing of it is left on any node that can be reached (rule
    /// A2).
    Result acquire() { return acquire(std::stop_token{}); }

    /// The same, given up when `stop` is stopped: at once during a pause, within one node_timeout during a
    /// round.
    Result acquire(std::stop_token stop) {
        return acquire(algorithm::Patience{.attempts = options_.retry.attempts, .stop = std::move(stop)});
    }

    /// One attempt (S12-S17).
    Result try_acquire() { return acquire(algorithm::Patience{.attempts = 1}); }

    /// Tries until `span` is over, whatever retry.attempts says; at least once if it is positive. Returns
    /// within `span` and one node_timeout. Reports what the last complete attempt ran into, `deadline` if
    /// none was.
    template <class Rep, class Period>
    Result acquire_for(std::chrono::duration<Rep, Period> span, std::stop_token stop = {}) {
        const auto deadline = deadline_after(clock_->now(), span);
        return acquire(algorithm::Patience{.deadline = deadline, .stop = std::move(stop)});
    }

    /// The same, until an instant of any clock; one that has passed is `deadline` without I/O.
    template <class TheirClock, class Duration>
    Result acquire_until(std::chrono::time_point<TheirClock, Duration> until, std::stop_token stop = {}) {
        return acquire_for(time_left(until), std::move(stop));
    }

    /// Puts the time that is left back to the whole ttl, in one round (S31). Blocks at most a round.
    /// On failure the time that was left stands (rule C2): no_quorum may be tried again, until remaining() is
    /// zero; `lost` says that a majority no longer has our key, or that the validity is over for good.
    Result extend() { return extend(options_.ttl); }

    /// The same with another ttl. Shorter than what is left changes nothing. A ttl that cannot work throws
    /// std::invalid_argument, as in the constructor.
    Result extend(std::chrono::milliseconds ttl) {
        detail::check_ttl("extend: ttl", ttl, options_.drift_factor, nodes_->node_timeout(),
                          nodes_->quarantine());
        if (!here()) return Result{Errc::not_held};
        const auto before = lease();
        if (before.empty() || before.released) return Result{Errc::not_held};
        if (!before.valid_at(clock_->now())) return Result{Errc::lost};
        const auto limits = algorithm::limits_of_extension(before);
        const auto claim = this->claim(ttl);
        auto round = algorithm::ballot(*nodes_, *clock_, claim, algorithm::extending(claim, before), limits);
        return watch_ ? watch_->settle(std::move(round), limits)
                      : algorithm::settle_extension(std::move(round), limits, lease_);
    }

    /// Lets go on all nodes (S26). Blocks one node_timeout at most; two where the watchdog is just extending.
    /// Success: a majority confirmed. `lost`: the lock had ended before; keys of others are left alone (rule
    /// B3). `no_quorum`: too few nodes answered; call it again, or let the keys expire after the ttl. In
    /// every case valid() is false from now on, and nothing is extended or told any more (rules B7, C9).
    Result release() noexcept {
        try {
            if (!here()) return Result{Errc::not_held};
            if (!watch_) return release(lease_);
            options_.watchdog->unwatch(*watch_);
            auto lease = watch_->give_up();
            auto result = release(lease);
            keep(lease);
            return result;
        } catch (const std::bad_alloc&) {
            return Result{std::make_error_code(std::errc::not_enough_memory)};
        } catch (...) {  // a Nodes of the user's own that breaks its contract
            return Result{Errc::no_quorum};
        }
    }

    // ---- The std vocabulary: Cpp17TimedLockable, for std::unique_lock, std::scoped_lock, std::lock.

    /// Waits while others hold it, without bound: also for a key that was set without an expiry. Throws Error
    /// when it cannot be had: the nodes form no quorum in retry.attempts attempts, or this Lock holds it
    /// already (resource_deadlock_would_occur).
    void lock() {
        const auto result =
            acquire(algorithm::Patience{.attempts = options_.retry.attempts, .outlasts_holders = true});
        if (!result) throw Error(result.error(), result.message());
    }

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

    void unlock() noexcept { let_go(); }

private:
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

    bool here() const noexcept { return process_ == this_process(); }

    std::shared_ptr<Watch> new_watch() const {
        return options_.watchdog ? std::make_shared<Watch>(*nodes_, *clock_, resources_, options_) : nullptr;
    }

    // The lease: with a watchdog, shared with it. In a child of fork() not to be touched, for the parent's
    // watchdog may have been about to change it.
    Lease lease() const { return watch_ ? watch_->lease() : lease_; }
    const Lease& signature() const noexcept { return watch_ ? watch_->signature() : lease_; }
    void keep(const Lease& lease) {
        if (watch_)
            watch_->keep(lease);
        else
            lease_ = lease;
    }

    algorithm::Claim claim(std::chrono::milliseconds ttl) const {
        return {resources_, ttl, options_.drift_factor, options_.fencing};
    }

    Result acquire(const algorithm::Patience& patience) {
        if (resources_.empty())
            return Result{std::make_error_code(std::errc::invalid_argument)};  // moved from
        if (!here()) {  // what the parent of fork() holds is not ours
            lease_ = {};
            watch_ = new_watch();
            process_ = this_process();
        }
        if (valid()) return Result{Errc::already_held};
        let_go();
        keep({});
        Lease lease;
        auto result = algorithm::acquire(*nodes_, *clock_, *entropy_, claim(options_.ttl), options_.retry,
                                         patience, lease);
        if (!result) return result;
        if (!watch_) {
            lease_ = lease;
        } else if (const auto error = begin_watch(lease)) {
            let_go();
            return Result{error};
        }
        return result;
    }

    std::error_code begin_watch(const Lease& lease) {
        watch_->begin(lease);
        try {
            options_.watchdog->watch(watch_);
            return {};
        } catch (const std::system_error& error) {  // in a child of fork(), which has to make a thread
            return error.code();
        } catch (const std::bad_alloc&) {
            return std::make_error_code(std::errc::not_enough_memory);
        }
    }

    Result release(Lease& lease) {
        if (lease.released && clock_->now() >= lease.valid_until) lease = {};
        if (lease.empty()) return Result{Errc::not_held};
        return algorithm::release(*nodes_, *clock_, resources_, lease);
    }

    void let_go() noexcept {
        if (here() && !lease().empty()) (void)release();
    }

    // Constant after construction.
    Nodes* nodes_;
    Clock* clock_;
    Entropy* entropy_;
    std::vector<std::string> resources_;
    LockOptions options_;

    // What is held, and by which process.
    Lease lease_{};                   // unused with a watchdog
    std::shared_ptr<Watch> watch_{};  // null without
    std::int64_t process_ = this_process();
};

}  // namespace redlock
