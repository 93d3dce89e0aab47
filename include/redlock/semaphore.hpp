// At most L holders at a time of one name, over N independent Redis masters: L slots, each an ordinary lock.
//
//     redlock::Semaphore semaphore{nodes, "exports", 3, {.ttl = 30s}};
//     if (auto result = semaphore.acquire_for(10s)) {
//         export_the_orders();
//         (void)semaphore.release();     // also done by the destructor
//     }
//
// The slots have names, `{exports}:slot:0` and so on, and who holds one holds its lock with all that lock.hpp
// says. To count the holders on each node instead, and ask a majority for fewer than L, would not do: of five
// nodes {1, 2, 3}, {3, 4, 5} and {1, 2, 4} each count two at most, and three hold.
//
// An acquisition begins with a slot at random. Where that is taken it looks, in one round, which of the
// others nobody holds, and tries those: at most L + 1 rounds for an attempt. There is no queue:
// LockOptions::fair is refused, and so is LockOptions::shared.
//
// - All should use the same L. Where they do not there are at most as many holders as the largest L allows.
// - It belongs to one thread at a time, also where LockOptions::on_lost is concerned: that must not release
// it.
// - With L = 1 it is a lock, but not that of the same name: Lock{nodes, "exports"} has another key.
// - A fencing token is larger than that of every earlier holder *of its slot*: what it is shown to must
//   remember one for each slot(), of reads as well as of writes.
// - LockOptions::at_least keeps the slot from everybody, LockOptions::holder is written beside it.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/error.hpp>
#include <redlock/export.hpp>
#include <redlock/lock.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock {

class REDLOCK_EXPORT Semaphore {
public:
    /// No I/O. Throws std::invalid_argument naming the field that cannot work: `limit` is from 1 to 1000.
    /// `nodes`, `clock` and `entropy` must outlive it.
    Semaphore(Nodes& nodes, std::string_view name, std::size_t limit, LockOptions options = {},
              Clock& clock = boot_clock(), Entropy& entropy = os_entropy());

    // ---- Questions, as those of Lock, about the slot that is held.

    bool valid() const noexcept { return lock_.valid(); }
    std::chrono::nanoseconds remaining() const noexcept { return lock_.remaining(); }
    std::stop_token lost() const { return lock_.lost(); }
    std::string_view owner() const noexcept { return lock_.owner(); }
    std::uint64_t fencing_token() const noexcept { return lock_.fencing_token(); }

    /// From 0 to L - 1; that which was tried last where none is held.
    std::size_t slot() const noexcept { return slot_; }
    /// Its key.
    const std::string& resource() const noexcept { return lock_.resource(); }

    // ---- Verbs, as those of Lock. A result is about the last slot that was tried: `held_by_other` means
    // that no slot could be had.

    /// Blocks as Lock::acquire(), with at most L + 1 rounds an attempt.
    Result acquire(std::stop_token stop = {}) { return acquire_by(Clock::never(), std::move(stop), false); }
    Result try_acquire();
    template <class Rep, class Period>
    Result acquire_for(std::chrono::duration<Rep, Period> span, std::stop_token stop = {}) {
        return acquire_by(deadline_after(clock_->now(), span), std::move(stop), true);
    }
    template <class TheirClock, class Duration>
    Result acquire_until(std::chrono::time_point<TheirClock, Duration> until, std::stop_token stop = {}) {
        return acquire_for(lock_.time_left(until), std::move(stop));
    }

    Result extend() { return lock_.extend(); }
    Result extend(std::chrono::milliseconds ttl) { return lock_.extend(ttl); }
    Result release() noexcept { return lock_.release(); }

    // ---- The std vocabulary, as that of Lock.

    void lock();
    bool try_lock() { return static_cast<bool>(try_acquire()); }
    template <class Rep, class Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> span) {
        return static_cast<bool>(span > span.zero() ? acquire_for(span) : try_acquire());
    }
    template <class TheirClock, class Duration>
    bool try_lock_until(std::chrono::time_point<TheirClock, Duration> until) {
        return try_lock_for(lock_.time_left(until));
    }
    void unlock() noexcept { lock_.unlock(); }

private:
    Result acquire_by(Clock::time_point deadline, std::stop_token stop, bool until_deadline);
    Result acquire(const algorithm::AcquireLimits& limits);
    Result attempt(const RoundLimits& limits);
    Result try_slot(std::size_t slot, const RoundLimits& limits);
    std::vector<bool> taken_slots(const RoundLimits& limits);

    Nodes* nodes_;
    Clock* clock_;
    Entropy* entropy_;
    LockOptions options_;
    std::vector<std::string> slots_;  // their keys
    std::size_t slot_ = 0;
    Lock lock_;  // of the slot that is held, or was tried last
};

}  // namespace redlock
