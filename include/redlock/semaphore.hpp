// A semaphore over N independent Redis masters: at most L clients hold a name at the same time. It has L
// *slots*, each of which is a lock. In the example, L is 3:
//
//     redlock::Semaphore semaphore{nodes, "exports", 3, {.ttl = 30s}};
//     if (auto result = semaphore.acquire_for(10s)) {
//         export_the_orders();
//         (void)semaphore.release();     // also done by the destructor
//     }
//
// A holder of the semaphore holds the lock of one slot, with everything that lock.hpp promises. The keys of
// the slots are `{exports}:slot:0` and so on.
//
// An attempt tries a random slot first. If it is taken, a round finds out which other slots are free, and the
// attempt tries those. It makes at most L + 1 rounds. There is no queue: the constructor rejects
// LockOptions::fair, and LockOptions::shared as well.
//
// - All clients should use the same L. Otherwise the number of holders is limited by the largest L in use.
// - A Semaphore belongs to one thread at a time. LockOptions::on_lost must not release it.
// - A fencing token is larger than the token of every earlier holder *of its slot*. The system that checks
//   the tokens must store the largest one for each slot(), and update it with reads as well as with writes.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/export.hpp>
#include <redlock/lock.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>

#include <cstddef>
#include <string_view>

namespace redlock {

/// A semaphore with the interface of Lock. It belongs to one thread at a time. The resources of the base
/// class are the slots, and it holds one of them.
class REDLOCK_EXPORT Semaphore : protected Lock {
public:
    /// Prepares a semaphore with `limit` slots, from 1 to 1000. Does no I/O. `nodes`, `clock` and `entropy`
    /// must outlive it. Throws std::invalid_argument, with the name of the field, if an argument or an option
    /// cannot work.
    Semaphore(Nodes& nodes, std::string_view name, std::size_t limit, LockOptions options = {},
              Clock& clock = boot_clock(), Entropy& entropy = os_entropy());

    // ---- Queries, as those of Lock, about the slot that is held.

    using LeaseView::valid, LeaseView::remaining, LeaseView::lost, LeaseView::owner, LeaseView::fencing_token;
    /// Returns the slot that is held, from 0 to L − 1. If none is held, returns the slot that was tried last.
    using LeaseView::slot;
    /// Returns the key of slot().
    using LeaseView::resource;

    // ---- Operations, as those of Lock. A result describes the last slot that was tried. `held_by_other`
    // means that no slot was free.

    /// Acquires a slot. Blocks as long as Lock::acquire(), but an attempt blocks for at most (L × (N + 1) +
    /// 1) × node_timeout: a round and a release for each slot, and one round that finds out which slots are
    /// free. N is the number of nodes.
    using Lock::acquire, Lock::try_acquire, Lock::acquire_for, Lock::acquire_until;
    using Lock::extend, Lock::release;

    // ---- The interface of std::timed_mutex, as that of Lock.

    using Lock::lock, Lock::try_lock, Lock::try_lock_for, Lock::try_lock_until, Lock::unlock;
};

}  // namespace redlock
