// Owns the lease of a lock. The Lock has it alone, or shares it with its watchdog and, while a loss is being
// reported, with the callback; it has no pointer to the Lock.
//
//     state       | what holds                                      | left by
//     ------------+-------------------------------------------------+----------------------------------------
//     free        | there is no lease                               | begin() → held
//     held        | on some nodes there are keys of this owner      | give_up() → unconfirmed, forget() → free
//     unconfirmed | given up, and too few nodes have confirmed that | end_release() → free, forget() → free
//
// A lease that is held is valid until its instant, or until it is found or reported to be lost. Each
// acquisition has a number: what comes too late, of an earlier one, finds another number and does nothing.
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

    /// False in a child of fork(), which must leave the rest alone: the parent's watchdog may have been about
    /// to change it.
    bool in_owning_process() const noexcept { return process_ == this_process(); }

    Nodes& nodes() const noexcept { return *nodes_; }
    const std::vector<std::string>& resources() const noexcept { return resources_; }
    const algorithm::LeaseRequest& request() const noexcept { return request_; }

    /// What the holder says of itself, see algorithm::note_holder(). There is no place for those of readers.
    void note_holder(const Lease& lease, std::chrono::milliseconds ttl,
                     Clock::time_point deadline = Clock::never()) const noexcept {
        if (!lease.shared) algorithm::note_holder(*nodes_, resources_, lease, holder_, ttl, deadline);
    }

    // ---- For the Lock.

    std::uint64_t number() const {
        const std::lock_guard guard{mutex_};
        return number_;
    }

    /// Empty unless this is the acquisition of now, and held or released.
    Lease lease(std::uint64_t number) const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number) ? lease_ : Lease{};
    }
    Lease lease() const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number_) ? lease_ : Lease{};
    }

    /// The text changes with the next acquisition, and not before.
    std::string_view owner() const {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number_) ? lease_.owner.view() : std::string_view{};
    }

    /// Stopped when the acquisition of now is lost.
    std::stop_token lost() const {
        const std::lock_guard guard{mutex_};
        return lost_.get_token();
    }

    /// A new acquisition, whose loss stops `lost`. The answer: its number.
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

    /// There is no lease, nor was there.
    void forget() noexcept {
        const std::lock_guard guard{mutex_};
        there_is_a_lease_ = false;
        ++number_;
    }

    /// Ends the validity and the report of a loss, and returns the lease as it was. After that on_lost does
    /// not begin, and lost() is not stopped.
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
        // Another thread may have decided to stop lost(), and not have come to it yet. The callbacks of
        // lost() are not waited for, because one of them may be waiting for this release.
        while (stopping.stop_possible() && !stopping.stop_requested())
            clock_->sleep_until(clock_->now() + std::chrono::microseconds{50}, {});
        return before;
    }

    /// What the round of the release has left.
    void end_release(std::uint64_t number, const Lease& left) noexcept {
        const std::lock_guard guard{mutex_};
        if (is_current_locked(number)) there_is_a_lease_ = !left.empty();
    }

    /// What the round of an extension by the holder has come to. Where that finds the lease lost, lost() is
    /// stopped; the watchdog reports the rest.
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

    /// Its holder is to stop, for another reason than a loss: lost() is stopped, nothing is extended any
    /// more, and no loss is reported.
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

    // ---- For the watchdog.

    RenewalPlan plan(std::uint64_t number) const {
        const std::lock_guard guard{mutex_};
        if (!is_current_locked(number) || lease_.released || loss_reported_) return {};
        // A thread that comes late, after the limit, does not extend either.
        const bool over = clock_->now() > hold_until_;
        return plan_renewal(lease_.valid_until, request_, last_failure_,
                            over ? Clock::time_point::min() : hold_until_, margin_);
    }

    /// What the round of a renewal has come to. One that was cut short is not held against the nodes, and is
    /// tried again at once.
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

    /// A renewal that could not even be asked for.
    void postpone(std::uint64_t number) noexcept {
        const std::lock_guard guard{mutex_};
        if (is_current_locked(number)) last_failure_ = clock_->now();
    }

    /// Reports the loss, once, and nothing that was given up: lost() is stopped, then on_lost is called
    /// unless a callback of lost() has released the lock, or has waited for another thread to do so. With a
    /// margin the validity runs on to its end. Needs no memory.
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
        const RenewalScope scope{{.queue = renewal_context().queue, .told = this, .number = number}};
        lost.request_stop();
        try {
            if (on_lost_ && is_still_held(number)) on_lost_(loss);
        } catch (...) {  // NOLINT(bugprone-empty-catch): the caller's, and nothing here could handle it
        }
    }

private:
    bool is_current_locked(std::uint64_t number) const noexcept {
        return there_is_a_lease_ && number == number_;
    }

    /// Returns whether this is the current acquisition, and nobody has released it.
    bool is_still_held(std::uint64_t number) const noexcept {
        const std::lock_guard guard{mutex_};
        return is_current_locked(number) && !lease_.released;
    }

    /// The caller must stop what this returns as soon as it has released the mutex: give_up() waits for that.
    std::stop_source decide_to_stop_locked() noexcept {
        stops_ = true;
        return lost_;
    }

    /// The instant that counts is this one, not the end of the round: in between the validity may have ended,
    /// and a caller may have seen it (rules C3, C4). Lock::valid() reads the clock before the lease. What was
    /// reported to be lost is not extended.
    Result commit_locked(algorithm::RoundResult&& round, const RoundLimits& limits) {
        if (loss_reported_) return algorithm::result_of(Errc::lost, std::move(round));
        round.ended = std::max(round.ended, clock_->now());
        return algorithm::apply_extension(std::move(round), limits, lease_);
    }

    // Constant after construction.
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

    // Guarded by mutex_.
    mutable std::mutex mutex_{};
    std::uint64_t number_ = 0;  // of the acquisition of now
    bool there_is_a_lease_ = false;
    Lease lease_{};
    std::stop_source lost_{std::nostopstate};
    bool stops_ = false;                               // lost() is stopped, or is about to be
    bool found_lost_ = false;                          // by an extension, before its time
    bool loss_reported_ = false;                       // of its loss
    std::optional<Clock::time_point> last_failure_{};  // of a renewal since the last that succeeded
    std::optional<Result> last_extend_error_{};
    Clock::time_point hold_until_ = Clock::never();
};

}  // namespace redlock::detail
