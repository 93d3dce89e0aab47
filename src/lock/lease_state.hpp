// The lease (lease.hpp) of a lock, and what an acquisition, an extension or a release does to it.
//
// A Lock shares its LeaseState with its watchdog, which extends the lease in another thread and reports its
// loss. To report a loss, the watchdog requests a stop on the token that lost() returns, and then calls
// LockOptions::on_lost. The callback may destroy the Lock, so a LeaseState has no pointer to the Lock.
//
//     state       | meaning                                      | transitions
//     ------------+----------------------------------------------+--------------------------------------------
//     free        | there is no lease                            | begin() → live
//     live        | the lease may be extended, and a watchdog    | apply_renewal(), if the lease is lost
//                 | (if there is one) will report its loss       | → found_lost
//                 |                                              | apply_extension(), if the lease is lost
//                 |                                              | and there is a watchdog → stopping
//                 |                                              | report_loss(), request_stop() → ending
//                 |                                              | end_watch() → unwatched
//                 |                                              | begin_release() → releasing
//     found_lost  | a renewal has found the loss, which will be  | as live
//                 | reported                                     |
//     stopping    | an extension by the holder has found the     | as live, but not → found_lost
//                 | loss, and requests a stop on lost(); the     |
//                 | loss will be reported                        |
//     ending      | the lease is not extended any more; a stop   | end_watch() → unwatched
//                 | is requested on lost(), and then on_lost is  | begin_release() → releasing
//                 | called if report_loss() has led here         |
//     unwatched   | as ending, but on_lost is not called         | begin_release() → releasing
//     releasing   | the release has begun, and may have to be    | end_release(), if it need not be repeated
//                 | repeated                                     | → free
//
// The states held and lapsed of a Lock (lock.hpp) are those from live to unwatched, before and after
// valid_until. Its state unconfirmed is `releasing` when the release is over.
//
// From each state, forget() leads to free. All other calls leave the state as it is.
//
// The lease can be used until `valid_until`, except in the states free and releasing. renewal_plan.hpp says
// when its loss is reported.
//
// Each acquisition has a number. A function that is called with the number of an earlier one does nothing.
#pragma once

#include <redlock/algorithm/algorithm.hpp>
#include <redlock/algorithm/lease.hpp>
#include <redlock/clock.hpp>
#include <redlock/detail/memory.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/entropy.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/process.hpp>
#include <redlock/result.hpp>

#include "renewal_plan.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::detail {

/// Whether an acquisition acquires all resources, or one of them, such as the slot of a semaphore.
enum class Acquires : bool { all, one };

/// What a lock is made of.
struct LockTerms {
    Nodes& nodes;
    Clock& clock;
    std::vector<std::string> names;  ///< the resources
    LockOptions options;
    Acquires acquires = Acquires::all;
    Entropy& entropy = os_entropy();
};

class LeaseState : NotCopied {
public:
    explicit LeaseState(LockTerms of_lock) : terms(std::move(of_lock)) {}

    const LockTerms terms;

    /// Returns false in a child of fork(), which must not use this object.
    bool in_owning_process() const noexcept { return process_ == this_process(); }

    /// With Acquires::one: returns the index of the name that was acquired or tried last.
    std::size_t slot() const noexcept { return slot_; }
    /// Sets slot(). Requires that the lease is free.
    void choose(std::size_t slot) noexcept { slot_ = slot; }
    /// Returns the resources of the lease.
    Resources resources() const noexcept {
        return terms.acquires == Acquires::all ? terms.names : Resources{terms.names}.subspan(slot_, 1);
    }
    /// Returns resources() and the options of the lease.
    algorithm::LeaseRequest request() const noexcept { return request_for(resources()); }
    /// Returns these resources and the options of the lease.
    algorithm::LeaseRequest request_for(Resources resources) const noexcept {
        const auto& options = terms.options;
        return {resources, options.ttl, options.drift_factor, options.fencing, options.fair, options.shared};
    }

    /// Writes LockOptions::holder, a text for people, beside the lock. A shared lock has no such text.
    void describe_holder(const Lease& lease, std::chrono::milliseconds ttl,
                         Clock::time_point deadline = Clock::never()) const noexcept {
        if (!lease.shared)
            algorithm::describe_holder(terms.nodes, resources(), lease, terms.options.holder, ttl, deadline);
    }

    // ---- For the Lock

    /// Returns the number of the current acquisition. In the state free, functions that are called with the
    /// returned number do nothing.
    std::uint64_t number() const {
        const std::lock_guard guard{mutex_};
        return number_;
    }

    /// Returns the number of the acquisition that a release() releases. In the callback on_lost, this is the
    /// acquisition that was lost, even if the lock has been acquired again since.
    std::uint64_t number_to_release() const {
        const auto& context = renewal_context();
        return context.lost_lease == this ? context.number : number();
    }

    /// Returns the lease, or an empty one if the state is free or `number` is an earlier acquisition.
    Lease lease(std::optional<std::uint64_t> number = {}) const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number.value_or(number_)) ? lease_ : Lease{};
    }

    /// Returns the owner, or an empty view if the state is free. The view is valid until the next
    /// acquisition.
    std::string_view owner() const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number_) ? lease_.owner.view() : std::string_view{};
    }

    /// Returns the token that is stopped by the loss of the current acquisition, or by request_stop(). If the
    /// state is free, this is the token of the last acquisition.
    std::stop_token lost() const {
        const std::lock_guard guard{mutex_};
        return stop_when_lost_.get_token();
    }

    /// Begins an acquisition with this lease, and returns its number. `stop_when_lost` is the source behind
    /// lost(), and std::stop_source{std::nostopstate} if there is no watchdog.
    std::uint64_t begin(const Lease& lease, std::stop_source stop_when_lost) noexcept {
        const std::lock_guard guard{mutex_};
        lease_ = lease;
        state_ = State::live;
        stop_when_lost_ = std::move(stop_when_lost);
        last_failure_.reset();
        last_extend_error_.reset();
        const auto now = terms.clock.now();
        max_hold_until_ = deadline_after(now, terms.options.max_hold);
        lease_.min_hold_until = now + terms.options.min_hold;
        return ++number_;
    }

    /// Ends the lease without a release. Nodes may still have its keys.
    void forget() noexcept {
        const std::lock_guard guard{mutex_};
        state_ = State::free;
        ++number_;
    }

    /// Begins the release, which ends the validity of the lease. Returns a copy of the lease from before. No
    /// stop is requested on lost() after this function has returned. It does not wait for a call of on_lost
    /// in another thread, which may be waiting for this release (rule C9 in docs/rules.md).
    Lease begin_release(std::uint64_t number) {
        std::unique_lock guard{mutex_};
        if (!is_current_locked(number)) return {};
        const auto before = lease_;
        const bool stops = state_ == State::stopping || state_ == State::ending;
        const auto stopping = stops ? stop_when_lost_ : std::stop_source{std::nostopstate};
        lease_.released = true;
        state_ = State::releasing;
        guard.unlock();
        // Another thread may be about to request the stop. Wait for this request, but not for the callbacks
        // that it runs.
        while (stopping.stop_possible() && !stopping.stop_requested())
            terms.clock.sleep_until(terms.clock.now() + std::chrono::microseconds{50}, {});
        return before;
    }

    /// Records the outcome of a release. `left` is what algorithm::release() has left of the lease: nothing
    /// if the release need not be repeated. Otherwise the lease stays as it is, so that a repeated release
    /// goes to the same nodes.
    void end_release(std::uint64_t number, const Lease& left) noexcept {
        const std::lock_guard guard{mutex_};
        if (is_current_locked(number) && left.empty()) state_ = State::free;
    }

    /// Updates the lease after an extension that the holder has requested. `round` has the votes of the
    /// nodes, which were asked within `limits`. If the result is Errc::lost and there is a watchdog, requests
    /// a stop on lost(). The watchdog, which calls plan() again, reports the loss.
    Result apply_extension(std::uint64_t number, algorithm::RoundResult&& round, const RoundLimits& limits) {
        std::unique_lock guard{mutex_};
        if (!is_current_locked(number)) return Result{Errc::lost};
        auto result = commit_locked(std::move(round), limits);
        const bool has_watchdog = stop_when_lost_.stop_possible();
        if (result.error() != Errc::lost || !will_report_locked(number) || !has_watchdog) return result;
        keep_for_report_locked(result);
        unlock_and_stop(std::move(guard), State::stopping);
        return result;
    }

    /// Requests a stop on lost() although the lease is not lost, so that the work under the lock stops.
    void request_stop(std::uint64_t number) noexcept {
        std::unique_lock guard{mutex_};
        if (will_report_locked(number)) unlock_and_stop(std::move(guard), State::ending);
    }

    /// Reports no loss from now on, because the lock of an event loop is being destroyed. If report_loss() is
    /// requesting its stop, it does not call on_lost. Must be called in the thread that requests the stops on
    /// lost(). Therefore begin_release() need not wait for a stop after this call.
    void end_watch(std::uint64_t number) noexcept {
        const std::lock_guard guard{mutex_};
        if (is_current_locked(number) && state_ != State::releasing) state_ = State::unwatched;
    }

    // ---- For the watchdog

    /// Returns when the lease must be extended, and when its loss must be reported. Both are Clock::never()
    /// unless the loss of the lease will be reported.
    RenewalPlan plan(std::uint64_t number) const {
        const std::lock_guard guard{mutex_};
        if (!will_report_locked(number)) return {};
        // After max_hold_until_, no extension is made, not even one that was due before. plan_renewal() does
        // not get the present time. If max_hold_until_ has passed, plan_renewal() gets the earliest instant
        // as its limit, and therefore plans no extension.
        const bool over = terms.clock.now() > max_hold_until_;
        return plan_renewal(lease_.valid_until, request(), last_failure_,
                            over ? Clock::time_point::min() : max_hold_until_, terms.options.margin);
    }

    /// Updates the lease after a *renewal*, which is an extension by the watchdog. The deadline in `limits`
    /// is the first instant at which the watchdog has to report the loss of any of its leases. If the result
    /// is Errc::deadline, this deadline has *cut* the round *short*, and no node has failed. The watchdog
    /// then makes another renewal without a pause.
    void apply_renewal(std::uint64_t number, algorithm::RoundResult&& round, const RoundLimits& limits) {
        const std::lock_guard guard{mutex_};
        if (!is_current_locked(number)) return;
        const auto ended = round.ended;
        auto result = commit_locked(std::move(round), limits);
        const bool cut_short = result.error() == Errc::deadline;
        last_failure_ = result || cut_short ? std::nullopt : std::optional{ended};
        if (result.error() == Errc::lost && state_ == State::live) state_ = State::found_lost;
        // A round that was cut short does not replace the report of a failure.
        if (result)
            last_extend_error_.reset();
        else if (!cut_short || !last_extend_error_)
            keep_for_report_locked(std::move(result));
    }

    /// Records that an extension could not be sent. It is tried again after a pause.
    void postpone(std::uint64_t number) noexcept {
        const std::lock_guard guard{mutex_};
        if (is_current_locked(number)) last_failure_ = terms.clock.now();
    }

    /// Reports the loss, unless that was done or must not be done: first requests a stop on lost(), and then
    /// calls on_lost unless a release has begun or the watch has ended before the call. Without a margin, the
    /// validity ends now. Allocates no memory, so that a loss is reported even if there is none left.
    void report_loss(std::uint64_t number) noexcept {
        std::unique_lock guard{mutex_};
        if (!will_report_locked(number)) return;
        const auto now = terms.clock.now();
        if (terms.options.margin == terms.options.margin.zero())
            lease_.valid_until = std::min(lease_.valid_until, now);
        auto loss = last_extend_error_ ? std::move(*last_extend_error_) : Result{Errc::lost};
        const bool by_limit = state_ == State::live && now >= max_hold_until_;
        loss.conclude(by_limit ? Errc::hold_limit : Errc::lost, loss.attempts());
        // A callback may call Lock::release() in this thread (renewer.hpp).
        const RenewalScope scope{
            {.renewals = renewal_context().renewals, .lost_lease = this, .number = number}};
        unlock_and_stop(std::move(guard), State::ending);
        try {
            if (terms.options.on_lost && may_call_on_lost(number)) terms.options.on_lost(loss);
        } catch (...) {  // NOLINT(bugprone-empty-catch): an exception of the user's callback
        }
    }

private:
    enum class State : std::uint8_t { free, live, found_lost, stopping, ending, unwatched, releasing };

    /// Returns true if there is a lease, and the number is that of its acquisition.
    bool is_current_locked(std::uint64_t number) const noexcept {
        return state_ != State::free && number == number_;
    }

    /// Returns true in the states in which the lease is extended and its loss will be reported.
    bool will_report_locked(std::uint64_t number) const noexcept {
        return is_current_locked(number) &&
               (state_ == State::live || state_ == State::found_lost || state_ == State::stopping);
    }

    /// Returns true if the state is still ending. Locks mutex_ itself.
    bool may_call_on_lost(std::uint64_t number) const noexcept {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number) && state_ == State::ending;
    }

    /// Enters the state `next`, which is stopping or ending, unlocks mutex_, and then requests a stop on
    /// lost(), because a callback of the stop may call this object. begin_release() waits for this stop.
    void unlock_and_stop(std::unique_lock<std::mutex> guard, State next) noexcept {
        state_ = next;
        auto stopping = stop_when_lost_;
        guard.unlock();
        stopping.request_stop();
    }

    /// Keeps the result of an extension that has failed. Without memory, on_lost gets no reports of the
    /// nodes.
    template <class ResultRef>
    void keep_for_report_locked(ResultRef&& failed) noexcept {
        last_extend_error_.reset();
        (void)has_memory_for(
            [&] { last_extend_error_ = std::make_unique<Result>(std::forward<ResultRef>(failed)); });
    }

    /// Updates the lease after an extension. In the states ending and unwatched, leaves the lease as it is,
    /// and the result is Errc::lost.
    ///
    /// The present instant counts as the end of the round. Otherwise a lease whose valid_until has passed
    /// since the round ended could become valid again (rules C3 and C4 in docs/rules.md).
    Result commit_locked(algorithm::RoundResult&& round, const RoundLimits& limits) {
        if (state_ == State::ending || state_ == State::unwatched)
            return algorithm::result_of(Errc::lost, std::move(round));
        round.ended = std::max(round.ended, terms.clock.now());
        return algorithm::apply_extension(std::move(round), limits, lease_);
    }

    // Constant after construction
    const std::int64_t process_ = this_process();

    std::atomic<std::size_t> slot_{0};

    // Guarded by mutex_
    mutable std::mutex mutex_{};
    std::uint64_t number_ = 0;  // of the current or last acquisition; forget() raises it, too
    State state_ = State::free;
    Lease lease_{};
    std::stop_source stop_when_lost_{std::nostopstate};
    // The instant at which the last extension of the watchdog failed; empty if it succeeded or was cut short.
    std::optional<Clock::time_point> last_failure_{};
    // The result of the last failed extension, for on_lost; null if there is none. Most locks never have one,
    // and a result is large.
    std::unique_ptr<Result> last_extend_error_{};
    Clock::time_point max_hold_until_ = Clock::never();  // the end of LockOptions::max_hold
};

}  // namespace redlock::detail
