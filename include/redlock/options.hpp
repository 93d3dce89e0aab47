// The options of a Lock. (NodesOptions is in redis_nodes.hpp.) Each field states its meaning and limits. Its
// initialiser is the default. The constructor of a Lock checks the options with check().
#pragma once

#include <redlock/clock.hpp>
#include <redlock/export.hpp>
#include <redlock/retry.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace redlock {

class Result;  // result.hpp
namespace detail {
class Renewer;  // the base class of Watchdog (watchdog.hpp)
}

struct LockOptions {
    /// The time after which the key of the lock expires on the nodes, unless the lock is extended. The lock
    /// is valid for the ttl minus the drift (see drift() below), counted from the start of the round that
    /// acquired the lock. An extension can make this time longer (lock.hpp).
    ///
    /// Without a watchdog, the ttl should be much longer than the work. With a watchdog, it can be shorter
    /// than the work, so that others do not wait for long if the holder crashes. The ttl must exceed the
    /// drift plus NodesOptions::node_timeout, and be at most 100 years. If there is a
    /// NodesOptions::quarantine, the ttl must not exceed it, because a node that has lost the key votes again
    /// after the quarantine.
    std::chrono::milliseconds ttl{10'000};

    /// How many attempts acquire() makes (`attempts`, 3 by default), and the longest pause between two
    /// attempts (`delay`, 200 ms by default). retry.hpp states the limits. The functions with a deadline,
    /// such as acquire_for(), ignore `attempts`.
    Retry retry{};

    /// The largest relative difference between the rates of two clocks: 0.01 allows for clocks that differ by
    /// 10 ms in a second. Use at least twice the worst rate error of any clock involved. From 0 to below 1.
    double drift_factor = 0.01;

    /// If true, each acquisition has a fencing token: a number that is larger than the token of every earlier
    /// holder. The system that the work changes, such as a database, uses it to reject a former holder that
    /// comes too late. It must do two things (docs/guarantees.md has an example):
    ///
    ///   1. Store the largest token that it has seen, in any access, reads included.
    ///   2. Reject every access, reads included, whose token is smaller.
    ///
    /// Usually an acquisition needs one round, as without fencing.
    bool fencing = false;

    /// If true, acquire() waits in a queue while others hold the resource. The release of a lock with this
    /// option wakes the client that has waited longest. waiting.hpp describes the queue.
    ///
    /// - acquire() waits for up to `queue_timeout`, the functions with a deadline until their deadline, and
    ///   lock() without limit.
    /// - try_acquire() and locks on several resources do not queue, but wake the next waiter when released.
    /// - Locks without this option, and clients in other languages, can use the same resource. They neither
    ///   queue nor wake a waiter.
    bool fair = false;

    /// How long acquire() of a `fair` lock waits in the queue before its last attempt. Until then, acquire()
    /// fails only after retry.attempts failures in a row for other reasons than another holder, or at once if
    /// a retry is pointless. With 0, acquire() does not queue, and makes retry.attempts attempts. Without a
    /// value, the time is (retry.attempts − 1) × retry.delay, the longest time of all pauses without `fair`:
    /// 400 ms by default.
    std::optional<std::chrono::milliseconds> queue_timeout{};

    /// If true, the holder of the lock is a reader. Several readers can hold the resource at the same time,
    /// but never while a client, even one in another language, holds an exclusive lock, that is, one without
    /// this option. Only for one resource, and not with `fair`.
    ///
    /// - Each reader has its own ttl, and extends and releases its own lock.
    /// - An exclusive lock can be acquired only when no reader is left. If new readers always come before the
    ///   last one leaves, it must wait for ever.
    /// - A reader cannot become a writer: release the lock, then acquire an exclusive one.
    ///
    /// With `fencing`, the tokens of two readers have no order. The system that checks the tokens must store
    /// two numbers: the largest token of any write, and the largest token of any access. It must reject a
    /// read whose token is smaller than the first number, and a write whose token is smaller than the second.
    ///
    ///     write with 7    accepted: largest write 7, largest access 7
    ///     read with 9     accepted: largest write 7, largest access 9
    ///     read with 8     accepted: 8 is not smaller than 7
    ///     write with 8    rejected: 8 is smaller than 9
    bool shared = false;

    /// The minimum hold time. For this time after the acquisition nobody can acquire the resource, even if
    /// the holder has released it. For example, several hosts start the same job at 3:00, but their clocks
    /// differ by up to 5 s. With a minimum hold time of 10 s, the job runs once, even if it takes only 1 s.
    ///
    /// From 0 (off) to the ttl. Not with `shared`. After an early release, the key has the value
    /// `redlock:min-hold` until the time is over.
    std::chrono::milliseconds min_hold{0};

    /// A text about the client that holds the lock, such as its host and process. query() and `redlock
    /// status` show the text. At most 1000 bytes; empty for none. The text is kept in a further key with the
    /// ttl of the lock. A `shared` lock has no such text.
    ///
    /// No operation waits until the text is written, and it is not sent again. So it may be missing on a node
    /// until the next extension, or may stay after the release until the ttl is over, mostly because a
    /// connection broke.
    std::string holder{};

    /// The address of a redlock::Watchdog, which extends the lock while the lock is held, and reports its
    /// loss; null for none. The watchdog must outlive the lock, and must use the same clock. `margin` and
    /// `on_lost` need it.
    detail::Renewer* watchdog = nullptr;

    /// The longest time for which the watchdog extends a lock after its acquisition, so that a stuck holder
    /// does not hold the lock for ever. The lock then ends within one more ttl. Must be positive;
    /// nanoseconds::max() means no limit.
    std::chrono::nanoseconds max_hold = std::chrono::hours{1};

    /// The time that the holder needs to stop its work. If the lock could not be extended, the watchdog
    /// reports the loss so early that this time is left, and does not extend the lock any more. So work that
    /// stops within the margin ends while valid() is still true, unless too many nodes have lost the key
    /// (case 2 of `on_lost`).
    ///
    /// Must be less than half of the ttl, and ttl − margin must exceed the drift plus node_timeout.
    std::chrono::milliseconds margin{0};

    /// The function that the watchdog calls once to report that the lock is lost, after a stop was requested
    /// on Lock::lost(). The watchdog reports a loss in two cases:
    ///
    /// 1. The lock was not extended in time, because too few nodes answered or because `max_hold` was over.
    ///    The report comes `margin` + 5 ms before the end of the validity. The 5 ms, or a hundredth of the
    ///    ttl if this is less, allow for the time that the thread needs to wake up. The report does not
    ///    change valid(). But if `margin` is 0, no time is left for work, so the report makes valid() false.
    /// 2. An extension found that so many nodes have lost the key that the others are no majority. The report
    ///    comes at once, and valid() is false, whatever the margin.
    ///
    /// The error of the Result is `lost`, or `hold_limit` if `max_hold` was over. Result::nodes() has the
    /// votes on the last failed extension, if there was one.
    ///
    /// The function runs in a thread of the watchdog, which does nothing for other locks until the function
    /// returns. Its exceptions are swallowed. It may release or destroy the lock. A release() in the function
    /// releases the lost acquisition only. If the Lock has acquired again, the new acquisition stays.
    ///
    /// If a std::stop_callback on lost() releases or destroys the lock in the watchdog's thread, the function
    /// is not called. If any other thread releases or destroys the lock (in case 2 also that of extend()),
    /// the function can still begin or be running afterwards. The objects that it uses must live longer than
    /// the watchdog, whose destructor waits for the function.
    std::function<void(const Result&)> on_lost{};
};

/// Returns the time by which the validity is shorter than the ttl, because clocks differ: ttl × drift_factor
/// + 2 ms. The 2 ms allow for the granularity of the expiry in Redis.
inline Clock::duration drift(std::chrono::milliseconds ttl, double drift_factor) {
    const std::chrono::duration<double, std::milli> share = ttl * drift_factor;
    return std::chrono::ceil<Clock::duration>(share) + std::chrono::milliseconds{2};
}

/// Throws std::invalid_argument with the name of the first field that cannot work. A quarantine of 0 means
/// that there is none. `type` is the name of the struct in the message.
REDLOCK_EXPORT void check(const LockOptions& options, std::chrono::milliseconds node_timeout,
                          std::chrono::milliseconds quarantine = {}, const std::string& type = "LockOptions");

}  // namespace redlock
