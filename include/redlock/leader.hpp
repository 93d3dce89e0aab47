// Leader election: one of several processes does some work, for as long as it can. Examples are billing, a
// scheduler, or the poller of a feed.
//
//     redlock::Leader leader{nodes, "billing:leader", {.ttl = 15s, .margin = 3s}};
//     leader.run([&](redlock::Term term) {
//         while (!term.lost().stop_requested()) bill_the_next(term.fencing_token());
//     }, stop);
//
// All processes run this code. One of them acquires the lock "billing:leader", and so becomes the leader and
// does the work. Its *term* lasts until the work returns. Meanwhile a watchdog extends the lock.
//
// If the lock cannot be extended, a stop is requested on lost(). In the example, this happens 3.005 s before
// the lock expires: `margin`, and 5 ms more because threads need time to wake up. If the work stops within
// the margin, it ends before another process can become the leader. After the stop request the lock is not
// extended any more, so a leader whose work hangs is replaced, too.
//
// A process that is suspended cannot notice the stop. Work that must never be done twice must show the
// fencing token to the system that it changes (LockOptions::fencing).
//
// run() has three states:
//
//     state       | meaning                   | transitions
//     ------------+---------------------------+------------------------------------------------------
//     campaigning | tries to acquire the lock | acquired → leading
//                 |                           | acquired so late that no more than the margin was
//                 |                           | left → releases the lock, pausing
//                 |                           | LeaderOptions::retry.attempts attempts had no quorum
//                 |                           | → pausing
//     leading     | the work runs             | the work returns or throws → releases the lock, pausing
//     pausing     | lets other processes      | the pause is over → campaigning
//                 | become the leader         |
//
// While it is campaigning or pausing, a stop request of the caller ends run(). An exception of the work ends
// run() if there is no LeaderOptions::on_error.
//
// The pause lasts for at most retry.delay. Each time the work throws, this limit doubles, up to
// longest_pause, until a term ends well.
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

namespace detail {
class TermSequence;
}

/// The options of a Leader. Fields with the name of a LockOptions field have its meaning and limits. Only
/// `ttl`, `margin` and `retry.delay` have another default.
struct LeaderOptions {
    /// The ttl of the lock. If the leader crashes, another process can be elected after this time at the
    /// latest.
    std::chrono::milliseconds ttl{15'000};

    /// The time that the work needs to stop. It should be longer than the longest step of the work between
    /// two checks of Term::lost(). Less than half of the ttl.
    std::chrono::milliseconds margin{3'000};

    /// `attempts`: how many attempts in a row without a quorum end a campaign. `delay`: the longest pause
    /// between two attempts and after a term.
    Retry retry{.delay = std::chrono::seconds{1}};

    double drift_factor = LockOptions{}.drift_factor;
    bool fair = LockOptions{}.fair;
    std::string holder = LockOptions{}.holder;

    /// The longest pause after work that has thrown. From retry.delay to 24 h.
    std::chrono::milliseconds longest_pause{60'000};

    /// The address of the Watchdog that extends the lock. If null, the Leader makes its own in its
    /// constructor.
    detail::Renewer* watchdog = LockOptions{}.watchdog;

    /// The function that run() calls, in the thread of run(), with each exception of the work or of
    /// on_failure. After the call, run() goes on. Without this function, run() throws the exception. If
    /// on_error itself throws, run() throws that exception.
    std::function<void(std::exception_ptr)> on_error{};

    /// The function for terms that fail. For each term, run() calls run_once() (below). If the Result is an
    /// error, run() then calls this function with it, in the thread of run(), unless the caller has requested
    /// a stop.
    std::function<void(const Result&)> on_failure{};
};

/// One leadership, from the election to the end of the work. All copies refer to the same term. Any thread
/// may use them, even when the term is over.
class REDLOCK_EXPORT Term {
public:
    // Without a move constructor, a move copies. So the functions can always be called.
    Term(const Term&) = default;
    Term& operator=(const Term&) = default;

    /// Returns a number that is larger than the number of every earlier term. Returns 0 if a node is a Redis
    /// Cluster, where there is no fencing.
    std::uint64_t fencing_token() const noexcept { return fencing_token_; }

    /// Returns a token on which a stop is requested when the work should end:
    ///
    /// - LeaderOptions::margin + 5 ms before valid_until(), if the lock could not be extended. If the ttl is
    ///   below 500 ms, a hundredth of the ttl takes the place of the 5 ms.
    /// - At once, if an extension finds that so many nodes have lost the key of the lock that the others are
    ///   no majority.
    /// - At once, if the caller of run() or run_once() requests a stop.
    std::stop_token lost() const noexcept { return lost_; }

    /// Returns the instant, by the Leader's clock, until which no other process can be the leader. Extensions
    /// of the lock move it. It is in the past when the term is over.
    Clock::time_point valid_until() const noexcept;

    /// Returns how long it is until valid_until(), even after a stop was requested on lost(); zero when the
    /// term is over.
    std::chrono::nanoseconds remaining() const noexcept;

private:
    friend class AsyncLeader;
    friend class Leader;
    explicit Term(detail::Acquisition acquisition);
    void request_stop() const noexcept;

    detail::Acquisition acquisition_;
    std::uint64_t fencing_token_;
    std::stop_token lost_;
};

/// A candidate for the leadership. It belongs to one thread at a time, and runs the campaign and the work in
/// the caller's thread.
class REDLOCK_EXPORT Leader {
public:
    using Work = std::function<void(Term)>;

    /// Prepares a candidate. Does no I/O. `nodes`, `clock` and `entropy` must outlive it. Throws
    /// std::invalid_argument, with the name of the field, if an option cannot work, and std::system_error if
    /// no thread can be started for a watchdog.
    Leader(Nodes& nodes, std::string resource, LeaderOptions options = {}, Clock& clock = boot_clock(),
           Entropy& entropy = os_entropy());
    Leader(const Leader&) = delete;
    Leader& operator=(const Leader&) = delete;

    /// Runs terms, with pauses between them, until a stop is requested on `stop`. The stop ends a pause at
    /// once, and a campaign within two node_timeouts. The work receives it through Term::lost(): run() then
    /// blocks until the work has returned, and for one or two node_timeouts more to release the lock.
    void run(const Work& work, std::stop_token stop);

    /// Runs one term: waits while another process leads, calls the work when this process has become the
    /// leader, and releases the lock. An exception of the work is thrown again after the release.
    ///
    /// Returns success if the release was confirmed, and the work has returned in time: while this process
    /// was still the leader, or after a stop was requested on `stop`. Errors without a call of the work:
    ///
    /// - `cancelled`: a stop was requested on `stop`.
    /// - `no_quorum`: retry.attempts attempts had no quorum.
    /// - `validity_exhausted`: the acquisition took so long that no more than the margin was left.
    /// - A code of the system: no entropy or no memory.
    ///
    /// If the lock was acquired nevertheless, run_once() first releases it, as after the work.
    ///
    /// Errors after the work:
    ///
    /// - `lost`: a stop was requested on Term::lost(), but not on `stop`, before the work returned.
    /// - `no_quorum`: too few nodes have confirmed the release. The next leader may have to wait for the ttl.
    Result run_once(const Work& work, std::stop_token stop = {});

private:
    void make_term(detail::TermSequence& sequence, const Work& work);

    LeaderOptions options_;
    std::unique_ptr<Watchdog> watchdog_;  // null if the options have one
    Lock lock_;
};

}  // namespace redlock
