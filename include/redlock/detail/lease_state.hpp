// The lease of a lock, behind a mutex. It decides what a round, an extension or a release means for the
// lease. A Lock shares it with its watchdog and, while a loss is reported, with the callback. It has no
// pointer to the Lock, so that the callback can destroy the Lock.
//
//     state       | meaning                                         | transitions
//     ------------+-------------------------------------------------+----------------------------------------
//     free        | there is no lease                               | begin() → held
//     held        | some nodes have keys of this owner              | give_up() → unconfirmed, forget() → free
//     unconfirmed | released, but too few nodes have confirmed it   | end_release() → free, forget() → free
//
// A lease that is held is valid until Lease::valid_until, unless an extension finds that it is lost, or its
// loss is reported, before. Each acquisition has a number. Most functions get the number of the acquisition
// that they are about, and do nothing if another acquisition has begun meanwhile or the lease is free.
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
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::detail {

class LeaseState {
public:
    LeaseState(Nodes& nodes, Clock& clock, std::vector<std::string> resources, const LockOptions& options)
        : nodes_(&nodes),
          clock_(&clock),
          resources_(std::move(resources)),
          request_{resources_,      options.ttl,  options.drift_factor,
                   options.fencing, options.fair, options.shared},
          max_hold_(options.max_hold),
          at_least_(options.at_least),
          holder_(options.holder),
          margin_(options.margin),
          on_lost_(options.on_lost) {}
    LeaseState(const LeaseState&) = delete;
    LeaseState& operator=(const LeaseState&) = delete;

    /// Returns false in a child of fork(). The child must not use this object any more, because a thread of
    /// the parent may have been changing it at the moment of the fork.
    bool in_owning_process() const noexcept { return process_ == this_process(); }

    Nodes& nodes() const noexcept { return *nodes_; }
    const std::vector<std::string>& resources() const noexcept { return resources_; }
    const algorithm::LeaseRequest& request() const noexcept { return request_; }

    /// Writes the holder description, see algorithm::note_holder(). A reader writes none.
    void note_holder(const Lease& lease, std::chrono::milliseconds ttl,
                     Clock::time_point deadline = Clock::never()) const noexcept {
        if (!lease.shared) algorithm::note_holder(*nodes_, resources_, lease, holder_, ttl, deadline);
    }

    // ---- For the Lock

    /// Returns the number of the current acquisition. If there is none, the other functions do nothing with
    /// the number.
    std::uint64_t number() const {
        const std::lock_guard guard{mutex_};
        return number_;
    }

    /// Returns the lease, held or unconfirmed, if `number` is the current acquisition; otherwise an empty
    /// one.
    Lease lease(std::uint64_t number) const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number) ? lease_ : Lease{};
    }
    Lease lease() const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number_) ? lease_ : Lease{};
    }

    /// Returns the owner of the current acquisition; empty if the lease is free. The text changes with the
    /// next acquisition, and not before.
    std::string_view owner() const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number_) ? lease_.owner.view() : std::string_view{};
    }

    /// Returns the token on which a stop is requested when the current acquisition is lost.
    std::stop_token lost() const {
        const std::lock_guard guard{mutex_};
        return lost_.get_token();
    }

    /// Begins an acquisition with this lease. If it is lost, a stop will be requested on `lost`. Returns its
    /// number.
    std::uint64_t begin(const Lease& lease, std::stop_source lost) noexcept {
        const std::lock_guard guard{mutex_};
        lease_ = lease;
        there_is_a_lease_ = true;
        lost_ = std::move(lost);
        stops_ = found_lost_ = loss_reported_ = false;
        last_failure_.reset();
        last_extend_error_.reset();
        const auto now = clock_->now();
        hold_until_ = deadline_after(now, max_hold_);
        lease_.keep_until = now + at_least_;
        return ++number_;
    }

    /// Ends the lease without a release: the state is free, whatever it was.
    void forget() noexcept {
        const std::lock_guard guard{mutex_};
        there_is_a_lease_ = false;
        ++number_;
    }

    /// Ends the validity, and returns the lease as it was before. When this function has returned, on_lost
    /// does not begin any more, and no stop is requested on lost() any more (rule C9).
    Lease give_up(std::uint64_t number) {
        Lease before;
        std::stop_source stopping{std::nostopstate};
        {
            const std::lock_guard guard{mutex_};
            if (!is_current_locked(number)) return {};
            before = lease_;
            lease_.released = true;
            if (stops_) stopping = lost_;
        }
        // Another thread may have decided to request the stop, without having done it yet. Wait for the
        // request, but not for the callbacks of lost(), because one of them may be waiting for this release.
        while (stopping.stop_possible() && !stopping.stop_requested())
            clock_->sleep_until(clock_->now() + std::chrono::microseconds{50}, {});
        return before;
    }

    /// Ends the round of a release. `left` is the lease that the round has left, which is empty if the
    /// release is complete.
    void end_release(std::uint64_t number, const Lease& left) noexcept {
        const std::lock_guard guard{mutex_};
        if (is_current_locked(number)) there_is_a_lease_ = !left.empty();
    }

    /// Applies the round of an extension that the holder has requested. If the lease is lost, requests a stop
    /// on lost(); on_lost is left to the watchdog.
    Result apply_extension(std::uint64_t number, algorithm::RoundResult&& round, const RoundLimits& limits) {
        Result result{Errc::lost};
        std::stop_source lost{std::nostopstate};
        {
            const std::lock_guard guard{mutex_};
            if (!is_current_locked(number)) return result;
            result = commit_locked(std::move(round), limits);
            if (result.error() != Errc::lost || lease_.released || !lost_.stop_possible()) return result;
            found_lost_ = true;
            last_extend_error_ = result;
            lost = decide_to_stop_locked();
        }
        lost.request_stop();
        return result;
    }

    /// Requests a stop on lost() for another reason than a loss: the caller of a Leader wants it to stop. The
    /// lease is not extended any more, and no loss is reported.
    void request_stop(std::uint64_t number) noexcept {
        std::stop_source lost{std::nostopstate};
        {
            const std::lock_guard guard{mutex_};
            if (!is_current_locked(number) || lease_.released || loss_reported_) return;
            loss_reported_ = true;
            lost = decide_to_stop_locked();
        }
        lost.request_stop();
    }

    // ---- For the watchdog

    /// Returns when the lease is to be extended, and when its loss is to be reported. Both are never if the
    /// lease is released, if its loss was reported, or after request_stop().
    RenewalPlan plan(std::uint64_t number) const {
        const std::lock_guard guard{mutex_};
        if (!is_current_locked(number) || lease_.released || loss_reported_) return {};
        // A thread that is late, after max_hold, must not extend either.
        const bool over = clock_->now() > hold_until_;
        return plan_renewal(lease_.valid_until, request_, last_failure_,
                            over ? Clock::time_point::min() : hold_until_, margin_);
    }

    /// Applies the round of an extension by the watchdog. If the round was cut short by its deadline, the
    /// nodes are not to blame: the extension is tried again at once.
    void apply_renewal(std::uint64_t number, algorithm::RoundResult&& round, const RoundLimits& limits) {
        const std::lock_guard guard{mutex_};
        if (!is_current_locked(number)) return;
        const auto ended = round.ended;
        auto result = commit_locked(std::move(round), limits);
        const bool cut_short = result.error() == Errc::deadline;
        last_failure_ = result || cut_short ? std::nullopt : std::optional{ended};
        found_lost_ = found_lost_ || result.error() == Errc::lost;
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

    /// Reports the loss, at most once, and not after a release. First requests a stop on lost(), then calls
    /// on_lost. Does not call on_lost if a callback of lost() has released the lock, or has waited for
    /// another thread to do so. With a margin, the validity goes on until its end. Needs no memory.
    void report_loss(std::uint64_t number) noexcept {
        Result loss{Errc::lost};
        std::stop_source lost{std::nostopstate};
        {
            const std::lock_guard guard{mutex_};
            if (!is_current_locked(number) || lease_.released || loss_reported_) return;
            loss_reported_ = true;
            const auto now = clock_->now();
            if (margin_ == margin_.zero()) lease_.valid_until = std::min(lease_.valid_until, now);
            if (last_extend_error_) loss = std::move(*last_extend_error_);
            const bool by_limit = !found_lost_ && now >= hold_until_;
            loss.conclude(by_limit ? Errc::hold_limit : Errc::lost, loss.attempts());
            lost = decide_to_stop_locked();
        }
        // The callbacks may call Lock::release(). In this thread, it must release the acquisition that was
        // lost, even if the Lock holds a later one, and must not wait for the watchdog's round. It reads both
        // from renewal_context().
        const RenewalScope scope{{.queue = renewal_context().queue, .told = this, .number = number}};
        lost.request_stop();
        try {
            if (on_lost_ && is_still_held(number)) on_lost_(loss);
        } catch (...) {  // NOLINT(bugprone-empty-catch): an exception of the user's callback
        }
    }

private:
    bool is_current_locked(std::uint64_t number) const noexcept {
        return there_is_a_lease_ && number == number_;
    }

    /// Returns true if this is the current acquisition and nobody has released it.
    bool is_still_held(std::uint64_t number) const noexcept {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number) && !lease_.released;
    }

    /// Decides that a stop is requested on lost(). The caller must request it on the returned source as soon
    /// as it has unlocked the mutex, because give_up() waits for that.
    std::stop_source decide_to_stop_locked() noexcept {
        stops_ = true;
        return lost_;
    }

    /// Applies the round of an extension to the lease. A lease whose loss was reported is not extended.
    ///
    /// The present instant counts as the end of the round. The validity may have ended since the last reply,
    /// and a caller may have seen that valid() is false (rules C3, C4). Lock::valid() reads the clock before
    /// it reads the lease, for the same reason.
    Result commit_locked(algorithm::RoundResult&& round, const RoundLimits& limits) {
        if (loss_reported_) return algorithm::result_of(Errc::lost, std::move(round));
        round.ended = std::max(round.ended, clock_->now());
        return algorithm::apply_extension(std::move(round), limits, lease_);
    }

    // Constant after construction
    Nodes* const nodes_;
    Clock* const clock_;
    const std::vector<std::string> resources_;
    const algorithm::LeaseRequest request_;
    const std::chrono::nanoseconds max_hold_;
    const std::chrono::milliseconds at_least_;
    const std::string holder_;
    const std::chrono::nanoseconds margin_;
    const std::function<void(const Result&)> on_lost_;
    const std::int64_t process_ = this_process();

    // Guarded by mutex_
    mutable std::mutex mutex_{};
    std::uint64_t number_ = 0;  // of the current or last acquisition
    bool there_is_a_lease_ = false;
    Lease lease_{};
    std::stop_source lost_{std::nostopstate};
    bool stops_ = false;       // a stop on lost_ was requested, or is about to be
    bool found_lost_ = false;  // an extension has returned `lost`
    // True if the loss was reported, or request_stop() was called: nothing is extended or reported any more.
    bool loss_reported_ = false;
    std::optional<Clock::time_point> last_failure_{};  // of the watchdog, since its last success
    std::optional<Result> last_extend_error_{};        // what on_lost gets
    Clock::time_point hold_until_ = Clock::never();
};

}  // namespace redlock::detail
