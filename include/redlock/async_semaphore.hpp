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

#include <cstddef>
#include <string_view>

namespace redlock {

/// A semaphore in an event loop. The rules of AsyncLock apply to its threads, operations, completions and
/// memory. LockOptions::on_lost may release or destroy an AsyncSemaphore, because the loop calls on_lost.
/// (The on_lost of a Semaphore runs in another thread, and a Semaphore belongs to one thread at a time.)
/// The resources of the base class are the slots, and it holds one of them.
class REDLOCK_EXPORT AsyncSemaphore : AsyncLock {
public:
    /// Prepares a semaphore with `limit` slots, from 1 to 1000. Does no I/O. The semaphore may outlive
    /// the AsyncNodes (see there). LockOptions::watchdog must be null or loop_watchdog(). Throws
    /// std::invalid_argument if an argument or an option cannot work.
    AsyncSemaphore(AsyncNodes& nodes, std::string_view name, std::size_t limit, LockOptions options = {});

    // The destructor, the move constructor and the move assignment do what those of AsyncLock do.

    // ---- Queries, see Semaphore. Any thread may call them, as those of AsyncLock.

    using LeaseView::valid, LeaseView::remaining, AsyncLock::lost, LeaseView::owner, LeaseView::fencing_token;
    /// Returns the slot that is held, from 0 to `limit` − 1. If none is held, returns the slot that was tried
    /// last, or 0 before the first attempt.
    using LeaseView::slot;
    /// Returns the key of slot(). The reference can be used as long as the object exists.
    using LeaseView::resource;

    // ---- Operations, see AsyncLock. semaphore.hpp says how an attempt chooses a slot, and how long it takes
    // at most. The message and the votes of a result are about the last slot that was tried, but its error
    // `held_by_other` means that no slot was free.

    /// Makes up to LockOptions::retry.attempts attempts, with pauses. The operation takes at most the time
    /// for which Semaphore::acquire() blocks.
    using AsyncLock::acquire;
    /// Makes one attempt. The operation takes at most the time for which Semaphore::try_acquire() blocks.
    using AsyncLock::try_acquire;
    /// Makes attempts until `span` is over. The operation takes at most `span` plus one node_timeout.
    using AsyncLock::acquire_for;

    // These functions do for the slot what they do for an AsyncLock.
    using AsyncLock::extend, AsyncLock::check_ttl, AsyncLock::release, AsyncLock::cancel;

    using AsyncLock::view;  // for redlock::asio
};

}  // namespace redlock
