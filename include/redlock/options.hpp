// The options of a Lock. Each field states its meaning and limits; the default is its initialiser. The
// constructor of a Lock checks them with check().
#pragma once

#include <redlock/clock.hpp>
#include <redlock/export.hpp>
#include <redlock/retry.hpp>

#include <chrono>
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace redlock {

class Result;  // result.hpp
namespace detail {
class Renewer;  // detail/renewer.hpp; Watchdog (watchdog.hpp) is the class to pass
}

struct LockOptions {
    /// The time after which the keys expire unless the lock is extended. The lock is valid for this time
    /// minus the drift (see drift()), counted from the start of the acquisition.
    ///
    /// Without a watchdog, the ttl should be much longer than the work. With a watchdog, a shorter ttl has an
    /// advantage: if the holder crashes, other clients wait for less time. The ttl must exceed the drift plus
    /// NodesOptions::node_timeout. It must be at most 100 years, and at most NodesOptions::quarantine if
    /// there is one.
    std::chrono::milliseconds ttl{10'000};

    /// How many attempts acquire() makes (`attempts`, 3 by default), and the longest pause between two of
    /// them (`delay`, 200 ms by default). retry.hpp states the limits. acquire_for(), acquire_until(),
    /// try_lock_for() and try_lock_until() make attempts until their deadline. They use retry.delay, and
    /// ignore retry.attempts.
    Retry retry{};

    /// The largest relative difference between the rates of two clocks: 0.01 allows for clocks that differ by
    /// 10 ms in a second. Use at least twice the worst rate error of any clock involved. From 0 to below 1.
    double drift_factor = 0.01;

    /// If true, each acquisition has a fencing token that is larger than the token of every earlier holder.
    /// The protected system checks the token (see fencing.hpp).
    ///
    /// An acquisition then sends a script instead of SET. Each node counts the holders and returns its count,
    /// and the largest count is the token. If fewer than a majority of the nodes have returned the largest
    /// count, a second round raises the other counts to it. A node begins to count at its wall clock in
    /// microseconds, and adds 1 for each holder. A count that is far ahead of the clocks is therefore wrong,
    /// and nodes refuse to raise their counts to it. Then a further round tries the next largest count,
    /// without the nodes that returned the wrong one. A quorum must remain, so there are at most
    /// N − quorum + 1 rounds that raise counts.
    bool fencing = false;

    /// If true, acquire() waits in a queue while others hold the resource. The client that has waited longest
    /// is next. The release of a lock with this option wakes the next waiter (see waiting.hpp).
    ///
    /// - acquire() waits in the queue for up to `queue_timeout`. The functions with a deadline wait until
    ///   their deadline, and lock() waits without limit.
    /// - try_acquire() and locks on several resources do not queue, but their release wakes the next waiter.
    /// - In an event loop, the four oldest waiters of each resource are in the queue, and the others wait in
    ///   the loop for their turn. With your own implementation of `Nodes`, the locks of a loop retry after
    ///   pauses instead.
    /// - Locks without this option, and clients in other languages, can use the same resource. They neither
    ///   wake a waiter nor wait in the queue.
    bool fair = false;

    /// How long acquire() of a `fair` lock waits in the queue. When this time is over, acquire() makes its
    /// last attempt. Attempts that fail because other clients hold the resource do not count towards
    /// retry.attempts, so while others hold the resource, only queue_timeout limits acquire(). Zero or more;
    /// 0 means that acquire() does not queue.
    ///
    /// Without a value it is as long as the pauses of a lock that is not fair can last, which is
    /// (retry.attempts − 1) × retry.delay, or 400 ms by default.
    std::optional<std::chrono::milliseconds> queue_timeout{};

    /// If true, the holder of the lock is a reader. Other readers can hold the resource at the same time. A
    /// reader excludes every ordinary lock of the resource, and every ordinary lock excludes all readers.
    /// This includes the locks of clients in other languages, which know nothing of readers. Only for one
    /// resource, and not with `fair`.
    ///
    /// - Each reader has a lock with its own ttl, which is extended and released independently of the locks
    ///   of other readers.
    /// - Readers whose holds overlap without a gap make an ordinary lock wait for ever.
    /// - A reader cannot become a writer: release the lock, then acquire an ordinary one.
    ///
    /// With `fencing`, tokens order a reader and a writer, but not two readers. If a resource has shared
    /// locks, the protected system must store two numbers instead of the one that fencing.hpp describes: the
    /// largest token of any write, and the largest token of any access. It must reject a read whose token is
    /// smaller than the first, and a write whose token is smaller than the second.
    ///
    ///     write with 7    accepted: largest write 7, largest access 7
    ///     read with 9     accepted: largest write 7, largest access 9
    ///     read with 8     accepted: 8 is not smaller than 7
    ///     write with 8    rejected: 8 is smaller than 9
    bool shared = false;

    /// The minimum hold time. For this time after the acquisition nobody can acquire the resource, even if
    /// the holder has released it. Use it if several hosts start the same job at a time of day, and their
    /// clocks differ by a few seconds: the host that comes second does not find the resource free. From 0
    /// (off) to the ttl, because the keys of a holder that dies live no longer than the ttl. Not with
    /// `shared`.
    ///
    /// A release before this time is over, also by unlock() or the destructor, replaces the value of the key
    /// by `redlock:min-hold`. The key then expires when the minimum hold time is over by the node's clock.
    /// Waiters wait until then.
    std::chrono::milliseconds min_hold{0};

    /// The holder description: a text about the client that holds the lock, such as its host and process.
    /// query() and `redlock status` show it. At most 1000 bytes; empty for none.
    ///
    /// After the acquisition and after each extension, a short script writes the description beside the key.
    /// It expires together with the key, and after a release the same script deletes it. The client does not
    /// wait for these scripts, and the description has no influence on a vote. A `shared` lock writes no
    /// description.
    std::string holder{};

    /// The address of the redlock::Watchdog that extends the lock for as long as it is held and reports its
    /// loss; null for none. The watchdog must outlive the lock, and must use the same clock.
    detail::Renewer* watchdog = nullptr;

    /// How long after the acquisition the watchdog stops extending, so that a stuck holder does not hold the
    /// lock for ever. The validity then ends within one more ttl. The watchdog reports the loss with the
    /// error `hold_limit`. Must be positive; nanoseconds::max() means never.
    std::chrono::nanoseconds max_hold = std::chrono::hours{1};

    /// The time that the holder needs to stop its work. If the lock cannot be extended, the watchdog reports
    /// the loss `margin` + 5 ms before the validity ends (see on_lost), and does not extend the lock after
    /// the report. Work that stops within the margin therefore ends while valid() is still true. There is one
    /// exception: if an extension finds that the nodes that can still have the key are no longer a majority,
    /// valid() becomes false at once. Must be less than half of the ttl, and ttl − margin must exceed the
    /// drift plus node_timeout. Needs `watchdog`.
    std::chrono::milliseconds margin{0};

    /// The function that the watchdog calls, once, when it reports that the lock is lost. Before that it
    /// requests a stop on Lock::lost(). It reports a loss in two cases:
    ///
    /// 1. The lock was not extended in time, because too few nodes answered or because `max_hold` was over.
    ///    The report comes `margin` + 5 ms before the validity ends. If the ttl is below 500 ms, a hundredth
    ///    of the ttl takes the place of the 5 ms.
    /// 2. An extension finds that the nodes that can still have the key are no longer a majority. The report
    ///    comes at once.
    ///
    /// The error of the argument is `lost`, or `hold_limit` if `max_hold` was over. Its node reports are
    /// those of the last failed extension, if there was one. Needs `watchdog`. To check for a loss between
    /// two steps of the work instead, use Lock::lost(). These rules apply to the function:
    ///
    /// - The function runs in the watchdog's thread, with no internal mutex held. Keep it short, because the
    ///   watchdog does nothing for other locks on the same nodes meanwhile. Exceptions of the function are
    ///   swallowed.
    /// - The function may release or destroy the lock. A release() in the function releases only the lost
    ///   acquisition, even if another thread has acquired the lock again: in the watchdog's thread, release()
    ///   knows whose loss is being reported.
    /// - The function can still begin or be running after release() or the destructor has returned (see
    ///   Lock::release()). The objects that it uses must live until it has returned. To be sure of that,
    ///   destroy the watchdog before them. Its destructor waits for the function, except when the function
    ///   itself destroys the watchdog.
    /// - The function is not called if a std::stop_callback on lost() releases the lock, or waits until
    ///   another thread has released the lock.
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

/// Throws std::invalid_argument. The text names the field, the value that it has, and what it must do, such
/// as "redlock: LockOptions::ttl is 0 ms; it must be positive".
[[noreturn]] REDLOCK_EXPORT void throw_invalid_argument(const std::string& field, const std::string& has,
                                                        const std::string& must);

/// Return the time as text, such as "50 ms".
REDLOCK_EXPORT std::string to_string(std::chrono::milliseconds span);
REDLOCK_EXPORT std::string to_string(std::chrono::nanoseconds span);

/// Returns a text unchanged, and a number or a time as text.
template <class Value>
std::string to_text(const Value& value) {
    using detail::to_string;
    using std::to_string;
    if constexpr (std::convertible_to<const Value&, std::string>)
        return value;
    else
        return to_string(value);
}

/// Throws as throw_invalid_argument() does unless `possible`. The parts of `must` become one text only if it
/// throws.
template <class Has, class... Must>
void require(bool possible, std::string_view field, const Has& has, const Must&... must) {
    if (!possible) throw_invalid_argument(std::string{field}, to_text(has), (... + to_text(must)));
}

/// Throws std::invalid_argument, with the name of the field, if the ttl cannot work. It must exceed the drift
/// plus node_timeout, because otherwise one node that does not answer in time could use up the whole
/// validity. It must not exceed a quarantine, because otherwise a node that has lost the key could vote again
/// while the lock is valid.
REDLOCK_EXPORT void check_ttl(const std::string& field, std::chrono::milliseconds ttl, double drift_factor,
                              std::chrono::milliseconds node_timeout, std::chrono::milliseconds quarantine);

}  // namespace detail

/// Throws std::invalid_argument with the name of the first field that cannot work. A quarantine of zero means
/// that there is none. `type` is the name of the options in the message.
REDLOCK_EXPORT void check(const LockOptions& options, std::chrono::milliseconds node_timeout,
                          std::chrono::milliseconds quarantine = {}, const std::string& type = "LockOptions");

}  // namespace redlock
