// Extends locks for as long as they are held, and reports a lock that is lost.
//
//     redlock::Watchdog watchdog;
//     redlock::Lock lock{nodes, "report:nightly", {.ttl = 30s, .watchdog = &watchdog}};
//     if (lock.acquire())
//         while (!lock.lost().stop_requested() && write_a_page()) {}
//
// Use it for work whose duration is not known, with a ttl so short that a crash of the holder does not block
// others for long. It does not protect work that must never be done twice. Some time passes between the
// report of a loss and the end of the work, and another client may hold the lock by then. See
// LockOptions::fencing.
//
// - A lock is extended from a third of its ttl on, and before half of the ttl is over if enough nodes answer.
// - If too few nodes answer, the watchdog goes on trying. It reports the loss LockOptions::margin + 5 ms
//   before the validity ends. If the ttl is below 500 ms, a hundredth of the ttl takes the place of the 5 ms.
// - If an extension finds that the nodes that can still have the key are no longer a majority, the watchdog
//   reports the loss at once.
// - If the machine was suspended meanwhile, the loss is reported within a second after it continues.
//   Lock::valid() returns false at once.
// - When LockOptions::max_hold is over, the lock is not extended any more. The loss is then reported before
//   the validity ends, with the error `hold_limit`.
//
// All locks on the same Nodes share a thread. A lock whose turn comes while a round of others hangs waits
// until that round is over, at most one node_timeout. Locks on other Nodes are not delayed.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/export.hpp>

#include <atomic>

namespace redlock {

/// A watchdog for any number of locks. Pass its address as LockOptions::watchdog. All threads may share it.
class REDLOCK_EXPORT Watchdog final : public detail::Renewer {
public:
    /// Starts the first thread. There is one more thread for each further Nodes that has locks under the
    /// watchdog at the same time. The threads block all signals. `clock` must be the clock of the locks, and
    /// must outlive the watchdog. Throws std::system_error if no thread can be started.
    explicit Watchdog(Clock& clock = boot_clock());

    /// Ends the threads. Blocks for at most one node_timeout, if an extension is under way. The locks under
    /// the watchdog must be destroyed before.
    ~Watchdog() override;

    // The functions that Lock calls; see detail::Renewer.
    Clock& clock() noexcept override { return *clock_; }
    void add(detail::Acquisition acquisition) override;
    void remove(const detail::Acquisition& acquisition) noexcept override;

private:
    class Impl;
    Impl& in_this_process();

    Clock* clock_;
    std::atomic<Impl*> impl_;  // owned; a new one in a child of fork()
};

}  // namespace redlock
