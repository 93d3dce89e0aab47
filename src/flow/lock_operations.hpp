// The operations of a lock, as flows: its acquisition, extension and release. They keep its lease in a
// LeaseState, and give it to its watchdog. An operation keeps the LeaseState alive, because a callback of the
// watchdog may destroy the lock meanwhile. The blocking Lock (lock.cpp) and the locks of an event loop
// (loop/lock_jobs.hpp) run the same flows.
#pragma once

#include <redlock/algorithm/acquire.hpp>
#include <redlock/algorithm/algorithm.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/result.hpp>

#include "../lock/lease_state.hpp"
#include "acquire.hpp"
#include "flow.hpp"
#include "lease.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace redlock::flow {

/// The release of one acquisition of a lock.
class ReleaseLock final : public Steps {
public:
    /// Begins the release: the validity of the lease ends, and the watchdog does not extend it any more. If a
    /// watchdog in another thread is extending the lease, blocks until this extension has ended.
    ReleaseLock(Operation& operation, std::shared_ptr<detail::LeaseState> state, std::uint64_t acquisition,
                Replies replies);

    /// Ends with `not_held` if there is nothing to release.
    Flow run();
    /// Returns the result of run(), which has ended with this error.
    Result take_result(std::error_code error) noexcept {
        return before_.empty() ? Result{error} : release_.take_result(error);
    }
    /// Sends the release that is left to do if run() has not ended. Does not wait for the replies. Returns
    /// false if there is no memory.
    bool send_unreleased() noexcept {
        if (lease_.empty()) return true;
        const bool sent = send(release_.request_at(state_->terms.clock.now()));
        state_->describe_holder(before_, {});  // deletes the description
        return sent;
    }

private:
    Lease begin();

    const std::shared_ptr<detail::LeaseState> state_;
    const std::uint64_t acquisition_;
    Lease lease_;                  // what is left to release
    const Lease before_ = lease_;  // what was to be released at the beginning
    Release release_;
};

/// The extension of the current acquisition of a lock.
class ExtendLock final : public Steps {
public:
    ExtendLock(Operation& operation, std::shared_ptr<detail::LeaseState> state,
               std::chrono::milliseconds ttl);

    /// Ends with `not_held` or `lost`, and makes no round, if there is no valid lease or if its loss was
    /// reported.
    Flow run();
    /// Returns the result of run(), which has ended with this error.
    Result take_result(std::error_code error) { return result_ ? *std::move(result_) : Result{error}; }
    /// Does nothing, because an extension leaves nothing to do.
    void send_unreleased() const noexcept {}

private:
    const std::shared_ptr<detail::LeaseState> state_;
    const std::uint64_t acquisition_ = state_->number();
    Lease before_{};  // the lease when run() began
    algorithm::LeaseRequest request_ = state_->request();
    RoundLimits limits_{};
    algorithm::RoundResult round_{.tally = nodes().blank_tally()};
    std::optional<Result> result_{};
};

/// The acquisition of a lock. The arguments must outlive it.
class AcquireLock final : public Steps {
public:
    /// `longest_undo` limits the time for which a failed acquisition without memory tries to release.
    AcquireLock(Operation& operation, std::shared_ptr<detail::LeaseState> state,
                const algorithm::AcquireLimits& limits, Clock::duration longest_undo)
        : Steps(operation), state_(std::move(state)), limits_(limits), longest_undo_(longest_undo) {}

    /// Ends with `already_held` if the lock is held. Otherwise releases what an earlier acquisition may have
    /// left on the nodes, and acquires. Before it throws, it does what send_unreleased() does.
    Flow run();
    /// Returns the result of run(), which has ended with this error.
    Result take_result(std::error_code error) noexcept {
        return acquire_ ? acquire_->take_result() : Result{error};
    }
    /// Sends each command that is left to do if run() was destroyed, see Acquire. Does not wait for the
    /// replies. Returns false if there is no memory. It can then be called again.
    bool send_unreleased() noexcept {
        if (earlier_) return earlier_->send_unreleased();
        bool sent = true;
        if (acquire_ && !has_begun_)
            acquire_->for_each_unreleased([&](const Request& request) { sent = sent && send(request); });
        return sent;
    }

private:
    Flow acquire();

    const std::shared_ptr<detail::LeaseState> state_;
    const algorithm::AcquireLimits limits_;
    const Clock::duration longest_undo_;
    // With Acquires::one, the acquisition chooses a name.
    const algorithm::LeaseRequest request_ = state_->request_for(state_->terms.names);
    std::unique_ptr<ReleaseLock> earlier_{};  // while an earlier acquisition is being released
    std::optional<Acquire> acquire_{};        // empty until that release has ended
    bool has_begun_ = false;                  // the LeaseState and the watchdog have the new lease
};

/// Returns the error of an operation that has thrown the current exception.
std::error_code error_of_exception() noexcept;

}  // namespace redlock::flow
