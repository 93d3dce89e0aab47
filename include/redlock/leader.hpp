// Leader election: one of several processes does some work, for as long as it can. Examples are billing, a
// scheduler, or the poller of a feed.
//
//     redlock::Leader leader{nodes, "billing:leader", {.ttl = 15s, .margin = 3s}};
//     leader.run([&](redlock::Term term) {
//         while (!term.lost().stop_requested()) bill_the_next(term.fencing_token());
//     }, stop);
//
// All processes run this code; one is elected and does the work. Its *term* lasts until the work returns.
// Meanwhile the lock of the leader is extended. If an extension is not possible, a stop is requested on
// lost() `margin` + 5 ms before the lock expires. Work that stops within the margin has therefore ended
// before another leader can be elected. After the stop request the lock is not extended any more, so a leader
// whose work hangs is replaced, too.
//
// A process that is suspended cannot notice the stop. Work that must never be done twice must show the
// fencing token to the system that it changes, in reads as well as in writes (see fencing.hpp).
//
//     state       | transitions of run()
//     ------------+----------------------------------------------------------------------------------
//     campaigning | elected → leading; `stop` → over; no quorum in retry.attempts attempts, or
//                 | elected when no more than the margin was left → pausing
//     leading     | the work returns, or throws and there is an on_error → release, pausing
//     pausing     | the pause is over → campaigning; `stop` → over
//
// The pause after a term gives other processes the opportunity to be elected. It lasts for at most
// retry.delay. Each time the work throws, this limit doubles, up to longest_pause, until a term ends well.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/export.hpp>
#include <redlock/lock.hpp>
#include <redlock/nodes.hpp>
#include <redlock/result.hpp>
#include <redlock/retry.hpp>
#include <redlock/watchdog.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace redlock {

/// The options of a Leader. Each field states its meaning, unit and limits. Fields that a LockOptions has,
/// too, have the same name. Only `ttl`, `margin` and `retry.delay` have another default, because a term lasts
/// longer than the usual hold of a lock.
struct LeaderOptions {
    /// How long a leader that has died stays the leader. The limits are those of LockOptions::ttl.
    std::chrono::milliseconds ttl{15'000};

    /// How long before the lock of the leader expires, plus 5 ms, a stop is requested on Term::lost(). Less
    /// than half of the ttl. Should be longer than the longest step of the work between two checks of
    /// Term::lost().
    std::chrono::milliseconds margin{3'000};

    /// How many attempts without a quorum end a campaign, and the longest pause between two attempts and
    /// after a term. Attempts that fail because there is a leader do not count.
    Retry retry{.delay = std::chrono::seconds{1}};

    /// These three have the meaning, the limits and the defaults that they have in LockOptions.
    double drift_factor = LockOptions{}.drift_factor;
    bool fair = LockOptions{}.fair;
    std::string holder = LockOptions{}.holder;

    /// The longest pause after work that has thrown. From retry.delay to 24 h.
    std::chrono::milliseconds longest_pause{60'000};

    /// The Watchdog that extends the term. If null, the Leader has its own one, with a thread, from its
    /// constructor on.
    detail::Renewer* watchdog = LockOptions{}.watchdog;

    /// The function that run() calls, in its thread, with an exception of the work or of on_failure. Without
    /// it the exception leaves run(), and so does an exception of this function.
    std::function<void(std::exception_ptr)> on_error{};

    /// The function that run() calls, in its thread, with the result of a failed term: no quorum, a lost
    /// leadership, or a release that was not confirmed. It is not called after a stop was requested.
    std::function<void(const Result&)> on_failure{};
};

/// One leadership, from the election to the end of the work. All copies refer to the same term. Any thread
/// may use them, even when the term is over.
class REDLOCK_EXPORT Term {
public:
    /// Returns a number that is larger than the number of every earlier term. The systems that the work
    /// changes should reject smaller ones.
    std::uint64_t fencing_token() const noexcept { return fencing_token_; }

    /// Returns a token on which a stop is requested when the work should end, after which the term is not
    /// extended any more:
    ///
    /// - LeaderOptions::margin + 5 ms before valid_until(), if the term could not be extended. If the ttl is
    ///   below 500 ms, a hundredth of the ttl takes the place of the 5 ms.
    /// - At once, if an extension finds that the nodes that can still have the leader's key are no longer a
    ///   majority.
    /// - At once, if the caller of run() or run_once() requests a stop.
    std::stop_token lost() const noexcept { return lost_; }

    /// Returns the instant, by the Leader's clock, until which no other process can be the leader. An
    /// extension moves it. It is in the past when the term is over.
    Clock::time_point valid_until() const noexcept;

    /// Returns how long it is until valid_until(), even after a stop was requested on lost(); zero when the
    /// term is over.
    std::chrono::nanoseconds remaining() const noexcept;

private:
    friend class AsyncLeader;
    friend class Leader;
    Term(detail::Acquisition acquisition, Clock& clock);
    void request_stop() const noexcept;

    detail::Acquisition acquisition_;
    Clock* clock_;
    std::uint64_t fencing_token_;
    std::stop_token lost_;
};

/// A candidate for the leadership. It belongs to one thread at a time, and runs the campaign and the work in
/// the caller's thread.
class REDLOCK_EXPORT Leader {
public:
    using Work = std::function<void(Term)>;

    /// Prepares a candidate. Does no I/O, but starts the thread of a Watchdog if the options have none.
    /// `nodes`, `clock` and `entropy` must outlive it. Throws std::invalid_argument, with the name of the
    /// field, if an option cannot work, and what the constructor of Watchdog throws.
    Leader(Nodes& nodes, std::string resource, LeaderOptions options = {}, Clock& clock = boot_clock(),
           Entropy& entropy = os_entropy());
    ~Leader();
    Leader(const Leader&) = delete;
    Leader& operator=(const Leader&) = delete;

    /// Runs terms, with pauses between them, until a stop is requested on `stop`. The stop ends a pause at
    /// once and a campaign as in Lock::acquire(std::stop_token), and is passed on to the work through
    /// Term::lost(). The function then blocks until the work has returned, plus one or two node_timeouts for
    /// the release.
    void run(const Work& work, std::stop_token stop);

    /// Runs one term: waits while another process leads, calls the work if this process is elected, and
    /// releases the leadership. An exception of the work is thrown again after the release.
    ///
    /// Success means that the work returned while this process was still the leader, or after a stop was
    /// requested on `stop`, and that the release was confirmed. Errors without a call of the work:
    ///
    /// - `cancelled`: a stop was requested on `stop`;
    /// - `no_quorum`: retry.attempts attempts had no quorum;
    /// - `validity_exhausted`: the election took so long that no more than the margin was left;
    /// - a code of the system: no entropy or no memory.
    ///
    /// Errors after the work:
    ///
    /// - `lost`: a stop was requested on Term::lost(), but not on `stop`, before the work returned;
    /// - `no_quorum`: too few nodes have confirmed the release. The next election may have to wait for the
    ///   ttl.
    Result run_once(const Work& work, std::stop_token stop = {});

private:
    bool work_as_leader(const Work& work, const std::stop_token& stop);

    Clock* clock_;
    Entropy* entropy_;
    LeaderOptions options_;
    std::unique_ptr<Watchdog> watchdog_;  // null if the options have one
    Lock lock_;
};

}  // namespace redlock
