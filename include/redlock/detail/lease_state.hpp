// The lease of a lock, behind a mutex. A lease is what the client knows about one acquisition: the owner (the
// random value of its keys), the instant until which the holder may rely on it, and the nodes that may have
// its keys (lease.hpp). This class decides what an acquisition, an extension or a release means for the
// lease.
//
// A Lock shares the object with its watchdog, which extends the lease and reports its loss. While a loss is
// reported, the callback LockOptions::on_lost runs in the watchdog's thread and can destroy the Lock.
// Therefore the object has no pointer to the Lock.
//
//     state       | meaning                                         | transitions
//     ------------+-------------------------------------------------+----------------------------------------
//     free        | there is no lease: has_lease_ is false          | begin() → held
//     held        | the lease may be extended, and its loss will be | report_loss(), request_stop() → ending
//                 | reported                                        | begin_release() → unconfirmed
//                 |                                                 | forget() → free
//     ending      | the lease is not extended any more, and no      | begin_release() → unconfirmed
//                 | further loss is reported: ending_ is true       | forget() → free
//     unconfirmed | its release has begun, and a majority of the    | end_release(), if a majority has
//                 | nodes has not confirmed it yet: lease_.released | confirmed it → free
//                 | is true                                         | forget() → free
//
// A Lock that is acquired again calls forget() before begin(). In the states other than free, nodes may still
// have keys of the owner.
//
// A lease that is held or ending is valid until Lease::valid_until. Besides the release, two things end its
// validity earlier: an extension that finds that the keys are lost, and report_loss() if LockOptions::margin
// is zero. The margin is a time that the holder wants for finishing its work after the report of a loss. The
// report then comes the margin before the end of the validity, and the lease must stay valid until that end.
// Therefore report_loss() does not change the validity if there is a margin.
//
// Each acquisition has a number. Most functions get the number of the acquisition that they are about. They
// do nothing if the lease is free, or if another acquisition has begun meanwhile.
#pragma once

#include <redlock/algorithm.hpp>
#include <redlock/clock.hpp>
#include <redlock/detail/renewal_plan.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/lease.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/process.hpp>
#include <redlock/result.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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

class LeaseState {
public:
    LeaseState(Nodes& nodes, Clock& clock, std::vector<std::string> names, LockOptions options,
               Acquires acquires = Acquires::all)
        : nodes_(&nodes),
          clock_(&clock),
          names_(std::move(names)),
          options_(std::move(options)),
          acquires_(acquires) {}
    LeaseState(const LeaseState&) = delete;
    LeaseState& operator=(const LeaseState&) = delete;

    /// Returns false in a child of fork(). The child must not use this object any more, because a thread of
    /// the parent may have been changing it at the moment of the fork.
    bool in_owning_process() const noexcept { return process_ == this_process(); }

    Nodes& nodes() const noexcept { return *nodes_; }
    /// Returns the names of all resources.
    const std::vector<std::string>& names() const noexcept { return names_; }
    Acquires acquires() const noexcept { return acquires_; }
    /// Returns the index of the resource that was acquired or tried last, if an acquisition acquires one.
    std::size_t slot() const noexcept { return slot_; }
    /// Sets slot(). Requires that the lease is free.
    void choose(std::size_t slot) noexcept { slot_ = slot; }
    /// Returns the resources of the lease.
    Resources resources() const noexcept {
        return acquires_ == Acquires::all ? names_ : Resources{names_}.subspan(slot_, 1);
    }
    /// Returns resources() and the options of the lease. A LeaseRequest is no Request: a Request is a
    /// command and its nodes, for Nodes::ask().
    algorithm::LeaseRequest request() const noexcept { return request_for(resources()); }
    /// Returns the same for an acquisition, which can acquire every name.
    algorithm::LeaseRequest acquire_request() const noexcept { return request_for(names_); }

    /// Writes the holder description, a text beside the lock for people to read (LockOptions::holder). The
    /// holder of a shared lock writes none.
    void describe_holder(const Lease& lease, std::chrono::milliseconds ttl,
                         Clock::time_point deadline = Clock::never()) const noexcept {
        if (!lease.shared)
            algorithm::describe_holder(*nodes_, resources(), lease, options_.holder, ttl, deadline);
    }

    // ---- For the Lock

    /// Returns the number of the current acquisition. If the lease is free, returns a number with which the
    /// other functions do nothing.
    std::uint64_t number() const {
        const std::lock_guard guard{mutex_};
        return number_;
    }

    /// Returns the lease. Returns an empty lease if the state is free, or if `number` is not the current
    /// acquisition.
    Lease lease(std::uint64_t number) const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number) ? lease_ : Lease{};
    }
    Lease lease() const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number_) ? lease_ : Lease{};
    }

    /// Returns the owner of the current acquisition; empty if the lease is free. The view is valid until the
    /// next acquisition. The caller must make sure that no other thread acquires the lock meanwhile.
    std::string_view owner() const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number_) ? lease_.owner.view() : std::string_view{};
    }

    /// Returns the token on which a stop is requested when the current acquisition is lost, or when
    /// request_stop() is called for it. If the lease is free, this is the token of the last acquisition.
    std::stop_token lost() const {
        const std::lock_guard guard{mutex_};
        return stop_when_lost_.get_token();
    }

    /// Begins an acquisition with this lease, and returns its number. `stop_when_lost` is the source behind
    /// lost(). It is std::stop_source{std::nostopstate} if there is no watchdog, because only a watchdog can
    /// report a loss.
    std::uint64_t begin(const Lease& lease, std::stop_source stop_when_lost) noexcept {
        const std::lock_guard guard{mutex_};
        lease_ = lease;
        has_lease_ = true;
        stop_when_lost_ = std::move(stop_when_lost);
        stops_ = found_lost_ = ending_ = false;
        last_failure_.reset();
        last_extend_error_.reset();
        const auto now = clock_->now();
        hold_until_ = deadline_after(now, options_.max_hold);
        lease_.keep_until = now + options_.min_hold;
        return ++number_;
    }

    /// Ends the lease without a release: the state is free, whatever it was.
    void forget() noexcept {
        const std::lock_guard guard{mutex_};
        has_lease_ = false;
        ++number_;
    }

    /// Begins the release: ends the validity, and returns the lease as it was before. After this function has
    /// returned, no stop is requested on lost() any more. Another thread may be in report_loss(), and may
    /// have found before that the lock is still held. It may then call on_lost even after this function has
    /// returned. This function does not wait for the callback, because the callback may be waiting for this
    /// release.
    Lease begin_release(std::uint64_t number) {
        Lease before;
        std::stop_source stopping{std::nostopstate};
        {
            const std::lock_guard guard{mutex_};
            if (!is_current_locked(number)) return {};
            before = lease_;
            lease_.released = true;
            if (stops_) stopping = stop_when_lost_;
        }
        // Another thread may have decided to request the stop, without having done it yet. Wait for the
        // request, but not for the callbacks of lost(), because one of them may be waiting for this release
        // as well. The other thread is about to make the request, so the loop mostly ends at once.
        while (stopping.stop_possible() && !stopping.stop_requested())
            clock_->sleep_until(clock_->now() + std::chrono::microseconds{50}, {});
        return before;
    }

    /// Records the outcome of a release. `unreleased` is empty if the release is complete. If too few nodes
    /// have confirmed it, the lease stays as it is, so that a repeated release goes to the same nodes.
    void end_release(std::uint64_t number, const Lease& unreleased) noexcept {
        const std::lock_guard guard{mutex_};
        if (is_current_locked(number)) has_lease_ = !unreleased.empty();
    }

    /// Applies the outcome of a round: an extension that the holder has requested. `limits` are the limits of
    /// the round. If the round finds that the lease is lost and there is a watchdog, requests a stop on
    /// lost(). The watchdog calls on_lost later, because its plan() then has an instant that has passed.
    Result apply_extension(std::uint64_t number, algorithm::RoundResult&& round, const RoundLimits& limits) {
        Result result{Errc::lost};
        std::stop_source stopping{std::nostopstate};
        {
            const std::lock_guard guard{mutex_};
            if (!is_current_locked(number)) return result;
            result = commit_locked(std::move(round), limits);
            const bool has_watchdog = stop_when_lost_.stop_possible();
            if (result.error() != Errc::lost || lease_.released || !has_watchdog) return result;
            found_lost_ = true;
            last_extend_error_ = result;
            stopping = decide_to_stop_locked();
        }
        stopping.request_stop();
        return result;
    }

    /// Requests a stop on lost() although the lease is not lost, because the caller of a Leader (leader.hpp)
    /// wants its work to stop. The lease becomes *ending*.
    void request_stop(std::uint64_t number) noexcept {
        std::stop_source stopping{std::nostopstate};
        {
            const std::lock_guard guard{mutex_};
            if (!is_current_locked(number) || lease_.released || ending_) return;
            ending_ = true;
            stopping = decide_to_stop_locked();
        }
        stopping.request_stop();
    }

    // ---- For the watchdog

    /// Returns when the lease must be extended, and when its loss must be reported. Both are Clock::never()
    /// if the lease is not in the state held.
    RenewalPlan plan(std::uint64_t number) const {
        const std::lock_guard guard{mutex_};
        if (!is_current_locked(number) || lease_.released || ending_) return {};
        // LockOptions::max_hold limits how long the lease is extended. If the thread of the watchdog wakes up
        // only after the end of this time, it must not extend the lease. plan_renewal() does not know the
        // present time, and could still plan an extension for an instant before hold_until_. The earliest
        // possible limit prevents this.
        const bool over = clock_->now() > hold_until_;
        return plan_renewal(lease_.valid_until, request(), last_failure_,
                            over ? Clock::time_point::min() : hold_until_, options_.margin);
    }

    /// Applies the outcome of a round: an extension by the watchdog. The deadline of such a round is the
    /// instant at which the watchdog has to report the next loss. If the deadline has cut the round short,
    /// the nodes have not failed, and the extension is tried again at once, without the pause that follows a
    /// failure.
    void apply_renewal(std::uint64_t number, algorithm::RoundResult&& round, const RoundLimits& limits) {
        const std::lock_guard guard{mutex_};
        if (!is_current_locked(number)) return;
        const auto ended = round.ended;
        auto result = commit_locked(std::move(round), limits);
        const bool cut_short = result.error() == Errc::deadline;
        last_failure_ = result || cut_short ? std::nullopt : std::optional{ended};
        found_lost_ = found_lost_ || result.error() == Errc::lost;
        // A real failure says more than a deadline, so it stays.
        if (result)
            last_extend_error_.reset();
        else if (!cut_short || !last_extend_error_)
            last_extend_error_ = std::move(result);
    }

    /// Records that an extension could not be sent at all, so that it is tried again after a pause.
    void postpone(std::uint64_t number) noexcept {
        const std::lock_guard guard{mutex_};
        if (is_current_locked(number)) last_failure_ = clock_->now();
    }

    /// Reports the loss if the lease is in the state held: first requests a stop on lost(), then calls
    /// on_lost. Does not call on_lost if a callback of lost() has released the lock, or has waited for
    /// another thread to do so. If LockOptions::margin is zero, the validity ends now. Otherwise the lease
    /// stays valid until Lease::valid_until, which is about the margin later. Allocates no memory, so that a
    /// loss is reported even if there is no memory left.
    void report_loss(std::uint64_t number) noexcept {
        Result loss{Errc::lost};
        std::stop_source stopping{std::nostopstate};
        {
            const std::lock_guard guard{mutex_};
            if (!is_current_locked(number) || lease_.released || ending_) return;
            ending_ = true;
            const auto now = clock_->now();
            if (options_.margin == options_.margin.zero())
                lease_.valid_until = std::min(lease_.valid_until, now);
            if (last_extend_error_) loss = std::move(*last_extend_error_);
            // The report has the nodes and the attempts of the last extension that failed, if there is one.
            const bool by_limit = !found_lost_ && now >= hold_until_;
            loss.conclude(by_limit ? Errc::hold_limit : Errc::lost, loss.attempts());
            stopping = decide_to_stop_locked();
        }
        // The callbacks may call Lock::release(). In this thread, the call must release the acquisition that
        // was lost, even if the Lock has made another acquisition since. The call must not wait for the
        // watchdog either, because this thread is the watchdog's. RenewalScope therefore tells
        // Lock::release() which acquisition was lost, and that it runs in the thread of a watchdog
        // (renewer.hpp).
        const RenewalScope scope{{.queue = renewal_context().queue, .lost_lease = this, .number = number}};
        stopping.request_stop();
        try {
            if (options_.on_lost && is_still_held(number)) options_.on_lost(loss);
        } catch (...) {  // NOLINT(bugprone-empty-catch): an exception of the user's callback
        }
    }

private:
    algorithm::LeaseRequest request_for(Resources resources) const noexcept {
        return {resources,        options_.ttl,  options_.drift_factor,
                options_.fencing, options_.fair, options_.shared};
    }

    // The caller of a function with the suffix _locked has locked mutex_.

    /// Returns true if the lease is not free and `number` is its acquisition.
    bool is_current_locked(std::uint64_t number) const noexcept { return has_lease_ && number == number_; }

    /// Returns true if this is the current acquisition and nobody has begun to release it.
    bool is_still_held(std::uint64_t number) const noexcept {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number) && !lease_.released;
    }

    /// Decides that a stop is requested on lost(). As soon as the caller has unlocked the mutex, it must
    /// request the stop on the returned source, because begin_release() waits for it.
    std::stop_source decide_to_stop_locked() noexcept {
        stops_ = true;
        return stop_when_lost_;
    }

    /// Applies the round of an extension to the lease. A lease in the state ending is not extended, and the
    /// result says that it is lost, even if the end was requested by request_stop(). For a lease that is
    /// being released, algorithm::apply_extension() returns the same.
    ///
    /// The validity may have ended since the last reply of the round, and a caller may have seen that valid()
    /// is false. An extension must not make it true again (rules C3 and C4 in docs/rules.md). Therefore the
    /// round is treated as if its last reply came now. Lock::valid() reads the clock before it reads the
    /// lease, for the same reason.
    Result commit_locked(algorithm::RoundResult&& round, const RoundLimits& limits) {
        if (ending_) return algorithm::result_of(Errc::lost, std::move(round));
        round.ended = std::max(round.ended, clock_->now());
        return algorithm::apply_extension(std::move(round), limits, lease_);
    }

    // Constant after construction
    Nodes* const nodes_;
    Clock* const clock_;
    const std::vector<std::string> names_;
    const LockOptions options_;
    const Acquires acquires_;
    const std::int64_t process_ = this_process();

    std::atomic<std::size_t> slot_{0};

    // Guarded by mutex_
    mutable std::mutex mutex_{};
    std::uint64_t number_ = 0;  // of the current or last acquisition
    bool has_lease_ = false;
    Lease lease_{};
    std::stop_source stop_when_lost_{std::nostopstate};
    bool stops_ = false;       // a stop on stop_when_lost_ was requested, or is about to be
    bool found_lost_ = false;  // an extension has returned `lost`
    bool ending_ = false;      // the lease is not extended any more, and no further loss is reported
    // The instant at which the last extension of the watchdog failed; empty if it succeeded or was cut short.
    std::optional<Clock::time_point> last_failure_{};
    std::optional<Result> last_extend_error_{};      // the result of the last failed extension, for on_lost
    Clock::time_point hold_until_ = Clock::never();  // the end of LockOptions::max_hold
};

}  // namespace redlock::detail
