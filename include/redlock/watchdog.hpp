// Extends locks for as long as they are held, and tells when one is lost: one thread for all locks.
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
// and then tells the loss; where the machine was suspended meanwhile, within a second of its waking up, while
// Lock::valid() knows it at once. After LockOptions::max_hold it stops extending, and the loss is told as
// `hold_limit` when the validity ends. A lock that comes under watch while a round of others hangs waits for
// the end of that, one node_timeout at most.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/watch.hpp>

#include <atomic>
#include <memory>

namespace redlock {

class Watchdog final : public Watcher {
public:
    /// Starts the thread, with all signals blocked. Throws std::system_error if there is none to be had. The
    /// clock must be that of the locks, and outlive it.
    explicit Watchdog(Clock& clock = boot_clock());

    /// Ends the thread; blocks while an extension is under way, one node_timeout at most. Its locks must be
    /// gone by then.
    ~Watchdog() override;

    Clock& clock() noexcept override;
    void watch(std::shared_ptr<Watch> watch) override;
    void unwatch(Watch& watch) noexcept override;

private:
    class Impl;
    Impl& here();

    Clock* clock_;
    std::atomic<Impl*> impl_;  // owned; another one after fork()
};

}  // namespace redlock
