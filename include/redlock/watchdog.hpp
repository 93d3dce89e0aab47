// Extends locks for as long as they are held, and reports when one is lost: one thread for all locks on the
// same Nodes.
//
//     redlock::Watchdog watchdog;
//     redlock::Lock lock{nodes, "report:nightly", {.ttl = 30s, .watchdog = &watchdog}};
//     if (lock.acquire())
//         while (!lock.lost().stop_requested() && write_a_page()) {}
//
// What it is for: work whose length is not known, with a ttl short enough that a crash of the holder costs
// others little (S61). What it is not for: work that must never be done twice. Between the notice and the
// moment the work hears of it there is always a while, in which another may hold the lock: see
// LockOptions::fencing.
//
// A lock is extended from a third of its ttl on, and no later than half of it while its nodes answer. Where
// they do not, the watchdog goes on trying until 5 ms (of a short ttl: a hundredth) before the validity ends,
// and then reports the loss; where the machine was suspended meanwhile, within a second of its waking up,
// while Lock::valid() knows it at once. After LockOptions::max_hold it stops extending, and the loss is
// reported as `hold_limit` when the validity ends. A lock that is acquired while a round of others on the
// same Nodes hangs waits for the end of that, one node_timeout at most; locks on other Nodes do not wait for
// it.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/export.hpp>

#include <atomic>

namespace redlock {

class REDLOCK_EXPORT Watchdog final : public detail::Renewer {
public:
    /// Starts the first thread, with all signals blocked, as are those of the others: one more for each Nodes
    /// that has locks under a watchdog at the same time. Throws std::system_error if there is none to be had.
    /// The clock must be that of the locks, and outlive it.
    explicit Watchdog(Clock& clock = boot_clock());

    /// Ends the threads; blocks while an extension is under way, one node_timeout at most. Its locks must be
    /// gone by then.
    ~Watchdog() override;

    Clock& clock() noexcept override;
    void add(detail::Acquisition acquisition) override;
    void remove(const detail::Acquisition& acquisition) noexcept override;

private:
    class Impl;
    Impl& in_this_process();

    Clock* clock_;
    std::atomic<Impl*> impl_;  // owned; another one after fork()
};

}  // namespace redlock
