// The options of a Lock: meaning, unit, default, and what each must exceed.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/export.hpp>
#include <redlock/retry.hpp>

#include <chrono>
#include <functional>
#include <string>

namespace redlock {

class Result;  // result.hpp
namespace detail {
class Renewer;  // detail/renewer.hpp; a Watchdog is one
}

struct LockOptions {
    /// The auto-release time and the time the holder has (S9). More than the drift and one node's budget;
    /// should exceed the normal work plus the time to acquire (S34). At most 100 years.
    std::chrono::milliseconds ttl{10'000};

    /// How often acquire() tries, and the pause between two attempts. The verbs with a deadline try until
    /// the deadline, and use the pause alone.
    Retry retry{};

    /// The share of the ttl by which clocks may drift apart in a ttl: at least twice the worst rate error
    /// of any clock involved (S16, S19). In [0, 1).
    double drift_factor = 0.01;

    /// Whether an acquisition comes with a token, larger than that of every earlier holder, for the resource
    /// to check. Costs a script in place of SET, and a second round where the nodes' counts differ; at
    /// most N − quorum + 1 of them, where nodes refuse to count that far.
    bool fencing = false;

    /// Whether acquire() waits in a queue while others hold the resource: those that wait get it in the order
    /// of their age, and the release of a lock with this option wakes the next one. acquire() then waits for
    /// as long as the pauses between its attempts would last together; the other verbs for as long as they
    /// would without. Several resources, and try_acquire(), do not queue; their release wakes those that do.
    /// Locks without this option, and clients in other languages, may use the resource as well: they neither
    /// wake anybody nor wait for their turn. See waiting.hpp.
    bool fair = false;

    /// Whether others that are shared may hold the resource at the same time: readers. It excludes, and is
    /// excluded by, every ordinary lock of the resource, also those of clients that know of no readers, in
    /// any language. Each reader has its own ttl, and is extended and released by itself. Readers that follow
    /// one another without a gap keep an ordinary lock waiting for ever. To become exclusive is to release
    /// and acquire. A fencing token orders it with exclusive holders, not with other readers: what is shown
    /// to should remember the largest of a write and the largest of any access, and refuse a write below the
    /// latter and a read below the former. One resource only, and not with `fair`.
    bool shared = false;

    /// How long the resource is kept from everybody, from the acquisition on, however soon it is released: so
    /// that hosts whose clocks differ, and which all try at "the same" time, do a job once. A release before
    /// that leaves `redlock:rest` under the key for the rest of the time, by the nodes' clocks; a holder that
    /// dies leaves its key for the ttl, so at most the ttl. Whoever waits waits for the end of it. Zero: not
    /// at all. Not with `shared`.
    std::chrono::milliseconds at_least{0};

    /// What the holder says of itself, such as host and process, for query() and `redlock status`: at most
    /// 1000 bytes, empty for none. Written beside the lock once that is acquired, for as long as it lasts;
    /// not waited for, no part of any vote, and nothing that exclusion rests on. Costs each node a short
    /// script more for an acquisition, an extension and a release. Not written for a `shared` lock.
    std::string holder{};

    /// A Watchdog that extends the lock for as long as it is held, and reports when it is lost; none if null
    /// (rule C6). Must outlive the lock.
    detail::Renewer* watchdog = nullptr;

    /// The watchdog stops extending this long after the acquisition, so that a stuck holder does not hold for
    /// ever (rule C7, S62); the lock then ends up to a ttl later. Positive; nanoseconds::max() means never.
    std::chrono::nanoseconds max_hold = std::chrono::hours{1};

    /// The watchdog tells the loss this long before the validity would end, and extends no more, so that work
    /// that stops then ends while the lock is valid(): which it is until the end, unless a majority has lost
    /// the key. Less than half of the ttl; needs `watchdog`.
    std::chrono::milliseconds margin{0};

    /// Called once, in the watchdog's thread, when the lock was lost (rule C8): a majority no longer has the
    /// key, or the validity is about to end and could not be extended, or was not, because of max_hold. See
    /// Lock::lost() for a token to wait on. Release or destroy the lock here, or anything else that is short:
    /// meanwhile the watchdog does nothing for other locks. No internal lock is held; what it throws is
    /// swallowed. A release() in it is about the acquisition that was lost, whatever the lock holds by then.
    /// It does not begin any more when release() or the destructor has returned. It may be under way then, in
    /// its thread: what it touches must live that long. lost() is stopped first: if a std::stop_callback on
    /// lost() releases the lock, or waits until another thread has released it, this is not called. Needs
    /// `watchdog`.
    std::function<void(const Result&)> on_lost{};
};

/// What is taken off the validity because clocks differ: ttl × drift_factor + 2 ms (S16). The 2 ms stand for
/// the granularity of Redis' expiry, as in the page's own implementations.
inline Clock::duration drift(std::chrono::milliseconds ttl, double drift_factor) {
    const std::chrono::duration<double, std::milli> share = ttl * drift_factor;
    return std::chrono::ceil<Clock::duration>(share) + std::chrono::milliseconds{2};
}

namespace detail {

inline constexpr std::chrono::milliseconds longest_ttl = std::chrono::hours{24 * 36'525};

[[noreturn]] REDLOCK_EXPORT void refuse(const std::string& field, const std::string& has,
                                        const std::string& must);

REDLOCK_EXPORT std::string text(std::chrono::milliseconds span);

/// A ttl that leaves no validity after drift and one node's budget could never be won (rule A10).
/// One above the quarantine would outlive it: its key could be lost and granted anew (S30).
REDLOCK_EXPORT void check_ttl(const std::string& field, std::chrono::milliseconds ttl, double drift_factor,
                              std::chrono::milliseconds node_timeout, std::chrono::milliseconds quarantine);

}  // namespace detail

/// Throws std::invalid_argument naming the first field that cannot work.
/// `type` is what the message calls the options.
REDLOCK_EXPORT void check(const LockOptions& options, std::chrono::milliseconds node_timeout,
                          std::chrono::milliseconds quarantine = {}, const std::string& type = "LockOptions");

}  // namespace redlock
