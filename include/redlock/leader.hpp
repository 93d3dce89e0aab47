// Work that one of several processes does at a time, for as long as it can: billing, a scheduler, a poller.
//
//     redlock::Leader leader{nodes, "billing:leader", {.ttl = 15s, .margin = 3s}};
//     leader.run([&](redlock::Term term) {
//         while (!term.lost().stop_requested()) bill_the_next(term.fencing_token());
//     }, stop);
//
// All run this; one is elected and does the work. Its term goes on until the work returns. It is extended
// meanwhile; when that fails, lost() is stopped `margin` before the term ends, so that work that stops within
// the margin is over before another leader is elected. After lost() nothing is extended: also work that does
// not listen is the leader's for a margin, and not for ever. A process that is suspended cannot listen: what
// must never be done by two checks the fencing token, in reads as well as in writes.
//
//     state       | left by
//     ------------+----------------------------------------------------------------------------------
//     campaigning | elected → leading; `stop` → over; no quorum in retry.attempts attempts, or elected with
//                 | no more than the margin left → pausing
//     leading     | the work returns, or throws and there is an on_error: the leader resigns → pausing
//     pausing     | the pause is over → campaigning; `stop` → over
//
// The pause after a term lets another one be elected. After work that has thrown it is twice as long as after
// the last that did, up to longest_pause, until a term ends well.
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
#include <utility>

namespace redlock {

struct LeaderOptions {
    /// How long a leader that has died is the leader still; as LockOptions::ttl.
    std::chrono::milliseconds ttl{15'000};

    /// How long before the end of a term its work is told to stop. Less than half of the ttl.
    std::chrono::milliseconds margin{3'000};

    /// How many attempts without a quorum make a failed campaign, and the longest pause between two, or after
    /// a term. Attempts that a leader refuses do not count.
    Retry retry{.attempts = 3, .delay = std::chrono::seconds{1}};

    /// As those of LockOptions.
    double drift_factor = 0.01;
    bool fair = false;
    std::string holder{};

    /// The longest pause after work that has thrown. At least retry.delay, at most 24 h.
    std::chrono::milliseconds longest_pause{60'000};

    /// What extends the term. Null: a Watchdog of its own, with a thread, from the constructor on.
    detail::Renewer* watchdog = nullptr;

    /// run() calls it, in its thread, with what the work, or on_failure, has thrown. If there is none, that
    /// leaves run(); so does what this throws.
    std::function<void(std::exception_ptr)> on_error{};

    /// run() calls it, in its thread, with what run_once() would return, where that is a failure other than
    /// by `stop`: there is no quorum, the leadership was lost, or its release was not confirmed.
    std::function<void(const Result&)> on_failure{};
};

/// One leadership: from an election to the end of the work. Copies are of the same term; any thread may ask
/// it, also when it is over.
class REDLOCK_EXPORT Term {
public:
    /// Larger than that of every earlier term: what the work writes to should refuse smaller ones.
    std::uint64_t fencing_token() const noexcept { return fencing_token_; }

    /// Stopped when the work is to end: the margin before valid_until() where the term could not be extended,
    /// at once where a majority has lost the leader's key, or when the caller's `stop` is stopped. Nothing is
    /// extended after that.
    std::stop_token lost() const noexcept { return lost_; }

    /// Until when no other can be the leader, unless the term is extended; an instant of the Leader's clock.
    /// In the past when the term is over.
    Clock::time_point valid_until() const noexcept;

    /// How long until then. Runs on after lost(); zero when the term is over.
    std::chrono::nanoseconds remaining() const noexcept;

private:
    friend class Leader;
    Term(std::shared_ptr<const detail::LeaseState> state, Clock& clock);

    std::shared_ptr<const detail::LeaseState> state_;
    Clock* clock_;
    std::uint64_t number_;  // of the acquisition
    std::uint64_t fencing_token_;
    std::stop_token lost_;
};

/// One thread at a time. It runs the campaign and the work in the caller's thread.
class REDLOCK_EXPORT Leader {
public:
    using Work = std::function<void(Term)>;

    /// A candidate; no I/O. Throws std::invalid_argument naming the field that cannot work, and what
    /// Watchdog throws where it makes one. `nodes`, `clock` and `entropy` must outlive it.
    Leader(Nodes& nodes, std::string resource, LeaderOptions options = {}, Clock& clock = boot_clock(),
           Entropy& entropy = os_entropy());
    ~Leader();
    Leader(const Leader&) = delete;
    Leader& operator=(const Leader&) = delete;

    /// Campaigns, works and resigns, again and again, until `stop` is stopped: that ends a campaign within
    /// one node_timeout and a pause at once, and tells the work by Term::lost(). Then blocks until the work
    /// has returned, and one or two node_timeouts for the release.
    void run(const Work& work, std::stop_token stop);

    /// One term. Waits to be elected, while another leads; calls the work once, or not at all; resigns. What
    /// the work throws is thrown here, after that. Success: the work returned as the leader, or was told to
    /// by `stop`, and the release was confirmed. Without a call of the work: `cancelled`, by `stop`;
    /// `no_quorum` in retry.attempts attempts; `validity_exhausted`, if the election took so long that no
    /// more than the margin was left; no entropy, no memory (system's code). After it: `lost`; `no_quorum`,
    /// if too few nodes have confirmed the release: the next election may have to wait for the ttl.
    Result run_once(const Work& work, std::stop_token stop = {});

private:
    bool work_as_leader(const Work& work, const std::stop_token& stop);

    Clock* clock_;
    Entropy* entropy_;
    LeaderOptions options_;
    std::unique_ptr<Watchdog> watchdog_;  // if none was given
    Lock lock_;
};

}  // namespace redlock
