// A semaphore for programs with an event loop. It does the same as Semaphore (semaphore.hpp), by the same
// algorithm, but no function blocks. When an operation has ended, the loop calls its completion, as that of
// an AsyncLock:
//
//     // loop_nodes is an AsyncNodes (async_nodes.hpp).
//     redlock::AsyncSemaphore semaphore{loop_nodes, "exports", 3, {.ttl = 30s}};
//     semaphore.acquire_for(10s, [&](redlock::Result result) {
//         if (!result) return log(result.message());
//         export_the_orders();
//         semaphore.release([](redlock::Result) {});
//     });
//
// semaphore.hpp documents what a semaphore promises, and its slots. async_lock.hpp documents the rules for
// operations and completions in a loop. This file documents the differences.
#pragma once

#include <redlock/async_lock.hpp>
#include <redlock/async_nodes.hpp>
#include <redlock/export.hpp>
#include <redlock/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace redlock {

/// A semaphore in an event loop. The rules of AsyncLock apply to its threads, operations, completions and
/// memory. LockOptions::on_lost may release or destroy an AsyncSemaphore, because the loop calls on_lost.
/// (The on_lost of a Semaphore runs in another thread, and a Semaphore belongs to one thread at a time.)
class REDLOCK_EXPORT AsyncSemaphore {
public:
    /// Prepares a semaphore with `limit` slots, from 1 to 1000. Does no I/O. The semaphore may outlive
    /// the AsyncNodes (see there). LockOptions::watchdog must be null or loop_watchdog(). Throws
    /// std::invalid_argument if an argument or an option cannot work.
    AsyncSemaphore(AsyncNodes& nodes, std::string_view name, std::size_t limit, LockOptions options = {});

    // The destructor, the move constructor and the move assignment do what those of AsyncLock do.

    // ---- Queries, see Semaphore. Any thread may call them, as those of AsyncLock.

    bool valid() const noexcept { return lock_.valid(); }
    std::chrono::nanoseconds remaining() const noexcept { return lock_.remaining(); }
    std::stop_token lost() const { return lock_.lost(); }
    std::string_view owner() const noexcept { return lock_.owner(); }
    std::uint64_t fencing_token() const noexcept { return lock_.fencing_token(); }
    /// Returns the slot that is held, from 0 to `limit` − 1. If none is held, returns the slot that was tried
    /// last, or 0 before the first attempt.
    std::size_t slot() const noexcept;
    /// Returns the key of slot(). The reference can be used as long as the object exists.
    const std::string& resource() const noexcept { return lock_.resource(); }

    // ---- Operations, see AsyncLock. semaphore.hpp says how an attempt chooses a slot, and how long it takes
    // at most. The message and the votes of a result are about the last slot that was tried, but its error
    // `held_by_other` means that no slot was free.

    /// Makes up to LockOptions::retry.attempts attempts, with pauses. The operation takes at most the time
    /// for which Semaphore::acquire() blocks.
    void acquire(Completion done) { lock_.acquire(std::move(done)); }
    /// Makes one attempt. The operation takes at most the time for which Semaphore::try_acquire() blocks.
    void try_acquire(Completion done) { lock_.try_acquire(std::move(done)); }
    /// Makes attempts until `span` is over. The operation takes at most `span` plus one node_timeout.
    template <class Rep, class Period>
    void acquire_for(std::chrono::duration<Rep, Period> span, Completion done) {
        lock_.acquire_for(span, std::move(done));
    }

    /// Extends the slot as Lock::extend() extends a lock. The operation takes at most one node_timeout.
    void extend(Completion done) { lock_.extend(std::move(done)); }
    /// Extends with another ttl. Throws std::invalid_argument for a ttl that cannot work.
    void extend(std::chrono::milliseconds ttl, Completion done) { lock_.extend(ttl, std::move(done)); }
    /// Throws the exception that extend() would throw for this ttl.
    void check_ttl(std::chrono::milliseconds ttl) const { lock_.check_ttl(ttl); }

    /// Releases the slot, as AsyncLock::release() releases a lock.
    void release(Completion done) { lock_.release(std::move(done)); }

    /// Cancels an acquisition, as AsyncLock::cancel() does.
    void cancel() noexcept { lock_.cancel(); }

private:
    AsyncLock lock_;  // its resources are the slots, and it holds one of them
};

}  // namespace redlock
