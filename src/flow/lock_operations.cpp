#include "lock_operations.hpp"

#include <redlock/detail/memory.hpp>

#include <algorithm>
#include <exception>
#include <new>
#include <stop_token>

namespace redlock::flow {

// ---- Releasing

ReleaseLock::ReleaseLock(Operation& operation, std::shared_ptr<detail::LeaseState> state,
                         std::uint64_t acquisition, Replies replies)
    : Steps(operation),
      state_(std::move(state)),
      acquisition_(acquisition),
      lease_(begin()),
      release_(operation, state_->terms.clock, state_->resources(), lease_, state_->terms.options.fair,
               replies) {}

/// Ends the validity, and returns the lease to release. Returns an empty lease if there is none. A release
/// that was not confirmed can be repeated, but once the validity has ended, this is needless.
Lease ReleaseLock::begin() {
    auto& state = *state_;
    if (state.terms.options.watchdog && !state.lease(acquisition_).empty())
        state.terms.options.watchdog->remove({state_, acquisition_});
    const auto lease = state.begin_release(acquisition_);
    return lease.released && state.terms.clock.now() >= lease.valid_until ? Lease{} : lease;
}

Flow ReleaseLock::run() {
    auto& state = *state_;
    std::error_code error = Errc::not_held;
    if (!before_.empty()) {
        const auto releasing = release_.run();
        error = co_await releasing;
        state.describe_holder(before_, {});  // a ttl of 0 deletes the description
    }
    state.end_release(acquisition_, lease_);
    co_return error;
}

// ---- Extending

ExtendLock::ExtendLock(Operation& operation, std::shared_ptr<detail::LeaseState> state,
                       std::chrono::milliseconds ttl)
    : Steps(operation), state_(std::move(state)) {
    request_.ttl = ttl;
}

/// If the lock is lost, apply_extension() runs the callbacks on lost(), and one of them may destroy the lock,
/// its nodes and its watchdog. In that case plan() has no further instant, and the watchdog is not touched.
/// Otherwise add() makes the watchdog compute its plan again, so that it reports the loss.
Flow ExtendLock::run() {
    auto& state = *state_;
    // The clock is read before the lease, as in LeaseView::remaining().
    const auto start = state.terms.clock.now();
    before_ = state.lease(acquisition_);
    if (before_.empty() || before_.released) co_return Errc::not_held;
    if (!before_.valid_at(start) || state.lost().stop_requested()) co_return Errc::lost;
    const auto request = algorithm::extend_request(request_, before_);
    limits_.deadline = before_.valid_until;
    co_await ask(request, limits_, round_.tally);
    round_.valid_until = algorithm::valid_until(start, request_);
    round_.ended = state.terms.clock.now();
    result_ = state.apply_extension(acquisition_, std::move(round_), limits_);
    const auto error = result_->error();
    if (!error) state.describe_holder(before_, request_.ttl);
    if (error == Errc::lost && state.terms.options.watchdog &&
        state.plan(acquisition_).next() != Clock::never())
        state.terms.options.watchdog->add({state_, acquisition_});
    co_return error;
}

// ---- Acquiring

/// If the flow fails, sends what it has left to do. Without memory, tries this again after a pause. After
/// `longest_undo_`, the keys expire.
Flow AcquireLock::run() {
    using namespace std::chrono_literals;
    std::exception_ptr failure;
    try {
        const auto acquiring = acquire();
        co_return co_await acquiring;
    } catch (...) {  // no memory, or a Nodes of the user that throws
        failure = std::current_exception();
    }
    auto& clock = state_->terms.clock;
    const auto start = clock.now();
    const auto until = deadline_after(start, longest_undo_);
    const std::stop_token no_stop;
    for (auto now = start; !send_unreleased() && now < until; now = clock.now())
        co_await pause(clock, now + std::max<Clock::duration>((now - start) / 4, 1ms), no_stop);
    std::rethrow_exception(failure);
}

Flow AcquireLock::acquire() {
    auto& state = *state_;
    const auto now = state.terms.clock.now();  // read before the lease, as in ExtendLock::run()
    if (state.lease().valid_at(now)) co_return Errc::already_held;
    if (!state.lease().empty()) {
        earlier_ = std::make_unique<ReleaseLock>(operation(), state_, state.number(), Replies::not_awaited);
        {
            const auto releasing = earlier_->run();
            co_await releasing;
        }
        earlier_.reset();
    }
    state.forget();  // even if the release was not confirmed: its keys expire
    // Allocated before the acquisition, because nothing may fail between the acquisition and begin().
    auto lost = state.terms.options.watchdog ? std::stop_source{} : std::stop_source{std::nostopstate};
    acquire_.emplace(operation(), state.terms.clock, state.terms.entropy, request_, state.terms.options.retry,
                     limits_, state.terms.acquires);
    std::error_code error;
    {
        const auto acquiring = acquire_->run();
        error = co_await acquiring;
    }
    if (const auto slot = acquire_->slot()) state.choose(*slot);
    if (error) co_return error;
    const auto acquisition = state.begin(acquire_->lease(), std::move(lost));
    state.describe_holder(acquire_->lease(), request_.ttl);
    // From then on the watchdog may report a loss, and a callback may destroy the lock and then its nodes.
    // Therefore neither of them is used after add().
    if (state.terms.options.watchdog) try {
            state.terms.options.watchdog->add({state_, acquisition});
        } catch (...) {  // no memory, or no thread; run() sends the release
            state.forget();
            throw;
        }
    has_begun_ = true;
    co_return error;
}

// ---- Failing

std::error_code error_of_exception() noexcept {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return std::make_error_code(std::errc::not_enough_memory);
    } catch (const std::system_error& error) {  // no thread for the watchdog
        if (error.code()) return error.code();
    } catch (...) {  // NOLINT(bugprone-empty-catch): see below
    }
    return Errc::no_quorum;  // a Nodes of the user has broken its contract
}

}  // namespace redlock::flow
