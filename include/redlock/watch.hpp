// A lock under watch: what its Lock and its watchdog share, and the pure decision of when to do what.
//
//     |--------- extension, from a third of the ttl on ---------|-|
//     start   ttl/3                                   tell_at ^ ^ valid_until
//
// The watchdog extends from a third of the ttl on (S61), a little later if that lets it extend others in the
// same round, and goes on trying. Right before the validity ends it tells the loss, whatever else is under
// way (rule C6).
#pragma once

#include <redlock/algorithm.hpp>
#include <redlock/clock.hpp>
#include <redlock/lease.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace redlock {

/// What is to be done for a lease under watch, and when.
struct WatchPlan {
    Clock::time_point extend_from = Clock::never();  ///< may be extended, in company
    Clock::time_point extend_by = Clock::never();    ///< is extended, if need be alone
    Clock::time_point tell_at = Clock::never();      ///< the loss is told

    Clock::time_point next() const noexcept { return std::min(extend_by, tell_at); }
};

/// The plan for a lease, of a last attempt to extend it that failed, and of the instant after which it is not
/// extended any more.
inline WatchPlan plan_watch(Clock::time_point valid_until, const algorithm::Claim& claim,
                            std::optional<Clock::time_point> last_failure, Clock::time_point hold_until) {
    using namespace std::chrono_literals;
    const Clock::duration ttl = claim.ttl;
    // What a thread may need to wake up: told at valid_until, it would mostly be told a little later.
    const auto tell_at = valid_until - std::min<Clock::duration>(ttl / 100, 5ms);
    const auto start = valid_until - (algorithm::valid_until({}, claim) - Clock::time_point{});
    const auto pause = std::clamp<Clock::duration>(ttl / 20, 1ms, 10s);
    const auto from = std::max(start + ttl / 3, last_failure ? *last_failure + pause : start);
    if (from >= std::min(hold_until, tell_at)) return {.tell_at = tell_at};
    const auto by = from + (last_failure ? pause / 2 : ttl / 24);
    return {.extend_from = from, .extend_by = std::min(by, hold_until), .tell_at = tell_at};
}

/// One lock under watch. Its Lock and its watchdog may use it at once; it has no pointer to the Lock.
class Watch {
public:
    Watch(Nodes& nodes, Clock& clock, std::vector<std::string> resources, const LockOptions& options)
        : nodes_(&nodes),
          clock_(&clock),
          resources_(std::move(resources)),
          claim_{resources_, options.ttl, options.drift_factor, options.fencing},
          max_hold_(options.max_hold),
          on_lost_(options.on_lost) {}
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // ---- For the Lock.

    Lease lease() const {
        const std::lock_guard guard{mutex_};
        return lease_;
    }

    /// Text that changes only when the Lock acquires or releases.
    const Lease& signature() const noexcept { return lease_; }

    /// A new acquisition.
    void begin(const Lease& lease) {
        std::stop_source lost;
        const std::lock_guard guard{mutex_};
        lease_ = lease;
        lost_ = std::move(lost);
        last_failure_.reset();
        last_words_.reset();
        hold_until_ = deadline_after(clock_->now(), max_hold_);
    }

    /// Ends it; the answer is what there was.
    Lease give_up() {
        const std::lock_guard guard{mutex_};
        auto result = lease_;
        lease_.released = !lease_.empty();
        return result;
    }

    void keep(const Lease& lease) {
        const std::lock_guard guard{mutex_};
        lease_ = lease;
    }

    Result settle(algorithm::Ballot&& round, const RoundLimits& limits) {
        const std::lock_guard guard{mutex_};
        return commit(std::move(round), limits);
    }

    /// Stopped when this acquisition is lost.
    std::stop_token lost() const {
        const std::lock_guard guard{mutex_};
        return lost_.get_token();
    }

    // ---- For the watchdog.

    Nodes& nodes() const noexcept { return *nodes_; }
    const algorithm::Claim& claim() const noexcept { return claim_; }

    WatchPlan plan() const {
        const std::lock_guard guard{mutex_};
        if (lease_.empty() || lease_.released) return {};
        // Whoever comes late, after the limit, does not extend either.
        const bool over = clock_->now() > hold_until_;
        return plan_watch(lease_.valid_until, claim_, last_failure_,
                          over ? Clock::time_point::min() : hold_until_);
    }

    /// The same as settle(), of an extension that the watchdog asked for. One that was cut short is not held
    /// against the nodes, and is tried again at once.
    Result settle_own(algorithm::Ballot&& round, const RoundLimits& limits) {
        const std::lock_guard guard{mutex_};
        const auto ended = round.ended;
        auto result = commit(std::move(round), limits);
        const bool cut_short = result.error() == Errc::deadline;
        last_failure_ = result || cut_short ? std::nullopt : std::optional{ended};
        if (result)
            last_words_.reset();
        else if (!cut_short || !last_words_)
            last_words_ = result;
        return result;
    }

    /// An extension that was not even asked for, for want of memory.
    void missed() {
        const std::lock_guard guard{mutex_};
        last_failure_ = clock_->now();
    }

    /// Why it is lost when no node has said so: the validity is over.
    Result loss_by_time() const {
        const std::lock_guard guard{mutex_};
        auto result = last_words_.value_or(Result{Errc::lost});
        const bool by_limit = clock_->now() >= hold_until_;
        return result.conclude(by_limit ? Errc::hold_limit : Errc::lost, result.attempts());
    }

    /// Tells the loss, once: from now on the lease is not valid. Nothing is told of what was given up.
    void tell(const Result& loss) noexcept {
        std::stop_source lost{std::nostopstate};
        {
            const std::lock_guard guard{mutex_};
            if (lease_.empty() || lease_.released || lost_.stop_requested()) return;
            lease_.valid_until = std::min(lease_.valid_until, clock_->now());
            lost = lost_;
        }
        lost.request_stop();
        try {
            if (on_lost_) on_lost_(loss);
        } catch (...) {  // NOLINT(bugprone-empty-catch): the caller's, and nobody here could handle it
        }
    }

private:
    /// The instant that counts is this one, not the end of the round: in between the validity may have ended,
    /// and somebody may have seen it (rules C3, C4). Who asks reads the clock before the lease.
    Result commit(algorithm::Ballot&& round, const RoundLimits& limits) {
        round.ended = std::max(round.ended, clock_->now());
        return algorithm::settle_extension(std::move(round), limits, lease_);
    }

    // Constant after construction.
    Nodes* const nodes_;
    Clock* const clock_;
    const std::vector<std::string> resources_;
    const algorithm::Claim claim_;
    const std::chrono::nanoseconds max_hold_;
    const std::function<void(const Result&)> on_lost_;

    // Guarded by mutex_.
    mutable std::mutex mutex_;
    Lease lease_{};
    std::stop_source lost_{std::nostopstate};
    std::optional<Clock::time_point> last_failure_{};  // of an extension since the last that succeeded
    std::optional<Result> last_words_{};               // what it said
    Clock::time_point hold_until_ = Clock::never();
};

/// Whoever extends what is under watch and tells its loss: a Watchdog, in a thread of its own.
class Watcher {
public:
    virtual ~Watcher() = default;

    /// The clock that it goes by; that of its locks must be the same.
    virtual Clock& clock() noexcept = 0;

    /// Begins to watch. May throw std::system_error, std::bad_alloc.
    virtual void watch(std::shared_ptr<Watch> watch) = 0;

    /// Ends it: when this has returned, nothing more is sent for `watch` (rule B7). Blocks while an extension
    /// is under way.
    virtual void unwatch(Watch& watch) noexcept = 0;

protected:
    Watcher() = default;
    Watcher(const Watcher&) = default;
    Watcher& operator=(const Watcher&) = default;
};

}  // namespace redlock
