// Extends locks for as long as they are held, and reports a lock that is lost.
//
//     redlock::Watchdog watchdog;
//     redlock::Lock lock{nodes, "report:nightly", {.ttl = 30s, .watchdog = &watchdog}};
//     if (lock.acquire())
//         while (!lock.lost().stop_requested() && write_a_page()) {}
//
// Use it for work whose duration is not known, with a ttl so short that a crash of the holder does not block
// others for long. It does not protect work that must never be done twice: another client may hold the lock
// before the work has noticed the loss. LockOptions::fencing protects such work.
//
// - The watchdog extends a lock when a third of the ttl has passed. If too few nodes answer, it tries again
//   until it reports the loss.
// - To report a loss, it requests a stop on Lock::lost(), and then calls LockOptions::on_lost. It does this a
//   little before the validity ends, or at once if too many nodes have lost the key. LockOptions::on_lost
//   documents the details.
// - When LockOptions::max_hold is over, it does not extend the lock any more.
// - If the machine was suspended and the validity has ended, it reports the loss within a second after the
//   machine continues. Lock::valid() returns false at once.
//
// The locks on one Nodes object share a thread. If a node hangs while the watchdog extends one of them, the
// others wait for at most one node_timeout. Locks on other Nodes objects are not delayed.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/export.hpp>

#include <atomic>

namespace redlock {

/// A watchdog for any number of locks. Pass its address as LockOptions::watchdog. All threads may share it.
class REDLOCK_EXPORT Watchdog final : public detail::Renewer {
public:
    /// Starts the first thread. Locks on further Nodes objects start more. The threads block all signals.
    /// `clock` must be the clock of the locks, and must outlive the watchdog. Throws std::system_error if no
    /// thread can be started.
    explicit Watchdog(Clock& clock = boot_clock());

    /// Ends the threads. If an extension is under way, blocks for at most one node_timeout. If an on_lost is
    /// running, waits until it returns, unless on_lost itself destroys the watchdog. Destroy the locks
    /// before.
    ~Watchdog() override;

    // The functions that Lock calls; see detail::Renewer.
    void add(detail::Acquisition acquisition) override;
    void remove(const detail::Acquisition& acquisition) noexcept override;

private:
    class Impl;
    Impl& in_this_process();

    std::atomic<Impl*> impl_;  // owned; a new one in a child of fork()
};

}  // namespace redlock
