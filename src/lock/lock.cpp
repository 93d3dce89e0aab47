// Lock: checks its options, and runs the flows of its operations in the calling thread. The lease itself is
// kept by a LeaseState, which the watchdog shares.
#include <redlock/algorithm/acquire.hpp>
#include <redlock/async_lock.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/lock.hpp>

#include "../flow/lock_operations.hpp"
#include "lease_state.hpp"
#include "option_checks.hpp"

#include <system_error>

namespace redlock {
namespace {

/// Runs an operation of a lock (flow/lock_operations.hpp), and returns its result. An exception becomes a
/// result, too.
template <class Operation, class... Arguments>
Result run(const std::shared_ptr<detail::LeaseState>& state, const Arguments&... arguments) noexcept {
    try {
        flow::BlockingOperation operation{state->terms.nodes};
        Operation steps{operation, state, arguments...};
        return steps.take_result(flow::run_blocking(operation, steps.run()));
    } catch (...) {
        return Result{flow::error_of_exception()};
    }
}

}  // namespace

Lock::Lock(Nodes& nodes, ResourceList resources, LockOptions options, Clock& clock, Entropy& entropy)
    : Lock(nodes, detail::checked_resources(std::move(resources).take()), std::move(options), clock, entropy,
           detail::Acquires::all) {}

Lock::Lock(Nodes& nodes, std::vector<std::string> names, LockOptions options, Clock& clock, Entropy& entropy,
           detail::Acquires acquires) {
    detail::check_lock(options, nodes, names);
    const auto* const required = nodes.required_clock();
    detail::require(!required || required == &clock, "clock", "not the clock of the nodes",
                    "be the same, because deadlines are instants of this clock");
    detail::require(options.watchdog != loop_watchdog(), "LockOptions::watchdog", "loop_watchdog()",
                    "be a Watchdog, because the lock belongs to no loop");
    detail::require(!options.watchdog || &options.watchdog->clock() == &clock, "LockOptions::watchdog",
                    "made for another clock", "use the clock of the lock");
    state_ = std::make_shared<detail::LeaseState>(
        detail::LockTerms{nodes, clock, std::move(names), std::move(options), acquires, entropy});
}

Lock::~Lock() {
    release_quietly();
}

Lock& Lock::operator=(Lock&& other) noexcept {
    if (this == &other) return *this;
    release_quietly();
    LeaseView::operator=(std::move(other));
    return *this;
}

// ---- Acquiring

Result Lock::acquire(std::stop_token stop) {
    auto limits = acquire_limits();
    limits.stop = std::move(stop);
    return acquire_within(limits);
}

Result Lock::try_acquire() {
    return acquire_within({.attempts = 1, .queue_timeout = {}});
}

Result Lock::acquire_by(Clock::time_point deadline, std::stop_token stop) {
    return acquire_within({.deadline = deadline, .stop = std::move(stop)});
}

void Lock::lock() {
    const auto result = acquire_within({.attempts = acquire_limits().attempts, .wait_while_held = true});
    if (!result) throw Error(result.error(), result.message());
}

Result Lock::acquire_within(const algorithm::AcquireLimits& limits) {
    if (!state_) return Result{std::make_error_code(std::errc::invalid_argument)};  // moved from
    try {  // a lease of the parent of fork() does not belong to the child
        if (!in_owning_process()) state_ = std::make_shared<detail::LeaseState>(state_->terms);
    } catch (...) {  // copying on_lost may throw anything
        return Result{flow::error_of_exception()};
    }
    return run<flow::AcquireLock>(state_, limits, state_->terms.nodes.node_timeout());
}

// ---- Extending

Result Lock::extend(std::chrono::milliseconds ttl) {
    check_ttl(ttl);
    if (!in_owning_process()) return Result{Errc::not_held};
    return run<flow::ExtendLock>(state_, ttl);
}

// ---- Releasing

Result Lock::release() noexcept {
    if (!in_owning_process()) return Result{Errc::not_held};
    return run<flow::ReleaseLock>(state_, state_->number_to_release(), flow::Replies::awaited);
}

void Lock::unlock() noexcept {
    if (in_owning_process())
        (void)run<flow::ReleaseLock>(state_, state_->number_to_release(), flow::Replies::not_awaited);
}

void Lock::release_quietly() noexcept {
    if (in_owning_process() && !state_->lease().empty())
        (void)run<flow::ReleaseLock>(state_, state_->number(), flow::Replies::not_awaited);
}

}  // namespace redlock
