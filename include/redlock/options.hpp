// The options of a Lock. Each field states its meaning, unit and limits; the default is its initialiser. The
// constructor of a Lock checks them with check().
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
class Renewer;  // detail/renewer.hpp; Watchdog (watchdog.hpp) is the class to pass
}

struct LockOptions {
    /// How long the lock is valid without an extension, and when its keys expire. It should exceed the normal
    /// duration of the work plus the time to acquire. Must exceed the drift (see drift()) plus
    /// NodesOptions::node_timeout, and be at most 100 years and at most NodesOptions::quarantine, if that is
    /// set.
    std::chrono::milliseconds ttl{10'000};

    /// How many attempts acquire() makes, and how long it pauses between two of them. The functions with a
    /// deadline make attempts until the deadline, and use only the pause.
    Retry retry{};

    /// The fraction of the ttl by which two clocks may disagree about the duration of a ttl. Use at least
    /// twice the worst rate error of any clock involved. From 0 to below 1.
    double drift_factor = 0.01;

    /// If true, each acquisition has a fencing token that is larger than the token of every earlier holder;
    /// the protected system checks it (see fencing.hpp). An acquisition then sends a script instead of SET.
    /// It needs a second round if the nodes' counts differ, and up to N − quorum + 1 such rounds if nodes
    /// refuse to count that far.
    bool fencing = false;

    /// If true, acquire() waits in a queue while others hold the resource. Waiters get it in the order of
    /// their age, and the release of a lock with this option wakes the next one (see waiting.hpp).
    ///
    /// - acquire() waits in the queue for up to (retry.attempts − 1) × retry.delay. The functions with a
    ///   deadline wait until their deadline, and lock() waits without limit.
    /// - try_acquire() and locks on several resources do not queue, but their release wakes the next waiter.
    /// - Locks without this option, and clients in other languages, can use the same resource. They neither
    ///   wake a waiter nor wait for their turn.
    bool fair = false;

    /// If true, the lock is held by a reader: others with this option can hold the resource at the same time.
    /// It excludes every ordinary lock of the resource, and every ordinary lock excludes it, even those of
    /// clients in other languages that know nothing of readers. Only for one resource, and not with `fair`.
    ///
    /// - Each reader has its own ttl. It is extended and released independently of the other readers.
    /// - Readers whose holds overlap without a gap make an ordinary lock wait for ever.
    /// - A reader cannot become a writer: release the lock, then acquire an ordinary one.
    ///
    /// With `fencing`, tokens order a reader and a writer, but not two readers. The protected system must
    /// store two numbers: the largest token of any write, and the largest token of any access. It must reject
    /// a read whose token is smaller than the first, and a write whose token is smaller than the second.
    ///
    ///     write with 7    accepted: largest write 7, largest access 7
    ///     read with 9     accepted: largest write 7, largest access 9
    ///     read with 8     accepted: 8 is not smaller than 7
    ///     write with 8    rejected: 8 is smaller than 9
    bool shared = false;

    /// The minimum hold time: nobody can acquire the resource until this time after the acquisition, however
    /// soon it is released. Several hosts that start a job at "the same" time by clocks that differ thus do
    /// it once. From 0 (off) to the ttl, because the keys of a holder that dies last no longer. Not with
    /// `shared`.
    ///
    /// An earlier release, also by unlock() or the destructor, replaces the value of the key by
    /// `redlock:rest` until the minimum hold time is over by the node's clock. Waiters wait for this instant.
    std::chrono::milliseconds at_least{0};

    /// The holder description, such as host and process, which query() and `redlock status` show. At most
    /// 1000 bytes; empty for none. It is written beside the key after the acquisition, and disappears with
    /// the key. The lock does not wait for it, and it has no influence on a vote or on exclusion. Each
    /// acquisition, extension and release sends one more short script to each node. A `shared` lock writes no
    /// description.
    std::string holder{};

    /// The Watchdog that extends the lock for as long as it is held and reports its loss; null for none. Must
    /// outlive the lock, and must use the same clock.
    detail::Renewer* watchdog = nullptr;

    /// How long after the acquisition the watchdog stops extending, so that a stuck holder does not hold for
    /// ever. The lock then ends within one more ttl, and its loss is reported as `hold_limit`. Must be
    /// positive; nanoseconds::max() means never.
    std::chrono::nanoseconds max_hold = std::chrono::hours{1};

    /// How long before the end of the validity the watchdog reports a loss. It does not extend the lock after
    /// that. Work that stops within the margin therefore ends while valid() is still true, unless a majority
    /// has lost the key. Must be less than half of the ttl, and ttl − margin must exceed the drift plus
    /// node_timeout. Needs `watchdog`.
    std::chrono::milliseconds margin{0};

    /// The function that the watchdog calls, once, when the lock is lost. A lock is lost if a majority no
    /// longer has the key, or if its validity is about to end. The argument is the result of the last failed
    /// extension, with the error `lost`, or `hold_limit` if `max_hold` is over. Needs `watchdog`. To wait for
    /// a loss instead, use Lock::lost().
    ///
    /// - It runs in the watchdog's thread, with no internal mutex held. Keep it short, because the watchdog
    ///   does nothing for other locks on the same nodes meanwhile. Its exceptions are swallowed.
    /// - It may release or destroy the lock. A release() in it releases only the lost acquisition, even if
    ///   the lock has been acquired again.
    /// - It does not begin after release() or the destructor has returned. If it has begun before, it can
    ///   still be running: the objects that it uses must live that long.
    /// - A stop is requested on lost() first. The function is not called if a std::stop_callback on lost()
    ///   releases the lock, or waits until another thread has released it.
    std::function<void(const Result&)> on_lost{};
};

/// Returns the time by which the validity is shortened because clocks differ: ttl × drift_factor + 2 ms. The
/// 2 ms stand for the granularity of the expiry in Redis, as in the implementations that the Redlock
/// specification refers to.
inline Clock::duration drift(std::chrono::milliseconds ttl, double drift_factor) {
    const std::chrono::duration<double, std::milli> share = ttl * drift_factor;
    return std::chrono::ceil<Clock::duration>(share) + std::chrono::milliseconds{2};
}

namespace detail {

/// The largest ttl and quarantine: 100 years.
inline constexpr std::chrono::milliseconds longest_ttl = std::chrono::hours{24 * 36'525};

/// Throws std::invalid_argument with the text "redlock: FIELD is HAS; it must MUST".
[[noreturn]] REDLOCK_EXPORT void refuse(const std::string& field, const std::string& has,
                                        const std::string& must);

/// Returns the time as text, such as "50 ms".
REDLOCK_EXPORT std::string text(std::chrono::milliseconds span);

/// Throws std::invalid_argument, with the name of the field, if the ttl cannot work. It must exceed the drift
/// plus node_timeout, because otherwise no acquisition could ever be valid. It must not exceed a quarantine,
/// because otherwise a node that has lost the key could vote again while the lock is valid.
REDLOCK_EXPORT void check_ttl(const std::string& field, std::chrono::milliseconds ttl, double drift_factor,
                              std::chrono::milliseconds node_timeout, std::chrono::milliseconds quarantine);

}  // namespace detail

/// Throws std::invalid_argument with the name of the first field that cannot work. `type` is the name of the
/// options in the message.
REDLOCK_EXPORT void check(const LockOptions& options, std::chrono::milliseconds node_timeout,
                          std::chrono::milliseconds quarantine = {}, const std::string& type = "LockOptions");

}  // namespace redlock
