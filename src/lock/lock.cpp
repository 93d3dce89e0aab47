// Lock: checks its options, and runs the flows of its operations in the calling thread. The lease itself is
// kept by a LeaseState, which the watchdog shares.
#include <redlock/algorithm/acquire.hpp>
#include <redlock/async_lock.hpp>
#include <redlock/detail/memory.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/lock.hpp>

#include "../flow/lock_operations.hpp"
#include "lease_state.hpp"

#include <algorithm>
#include <system_error>

namespace redlock {
namespace {

/// Runs an operation of a lock (flow/lock_operations.hpp), and returns its result. An exception becomes a
/// result, too.
template <class Operation, class... Arguments>
Result run(Nodes& nodes, Arguments&&... arguments) noexcept {
    try {
        flow::BlockingOperation operation{nodes};
        Operation steps{operation, std::forward<Arguments>(arguments)...};
        return steps.take_result(flow::run_blocking(operation, steps.run()));
    } catch (...) {
        return Result{flow::error_of_exception()};
    }
}

/// Sends the commands that a failed acquisition has left to do. While there is no memory, tries again for one
/// node_timeout. After that, the keys expire.
void release_what_is_left(Nodes& nodes, flow::AcquireLock& acquire, Clock& clock) noexcept {
    using namespace std::chrono_literals;
    const auto start = clock.now();
    auto now = start;
    const auto send = [&] {
        acquire.for_each_unreleased(
            [&](const Request& request) { (void)nodes.ask(request, {.awaits_answers = false}); });
    };
    try {  // at least once, because a Nodes of the user may have no node_timeout
        while (!detail::has_memory_for(send) && now < start + nodes.node_timeout()) {
            clock.sleep_until(now + std::max<Clock::duration>((now - start) / 4, 1ms), {});
            now = clock.now();
        }
    } catch (...) {  // NOLINT(bugprone-empty-catch): a Nodes of the user that throws
    }
}

}  // namespace

Lock::Lock(Nodes& nodes, ResourceList resources, LockOptions options, Clock& clock, Entropy& entropy)
    : Lock(nodes, detail::checked_resources(std::move(resources).take()), std::move(options), clock, entropy,
           detail::Acquires::all) {}

Lock::Lock(Nodes& nodes, std::vector<std::string> names, LockOptions options, Clock& clock, Entropy& entropy,
           detail::Acquires acquires)
    : nodes_(&nodes), clock_(&clock), entropy_(&entropy), options_(std::move(options)) {
    check(options_, nodes.node_timeout(), nodes.quarantine());
    detail::check_for_cluster(nodes, names, options_);
    detail::require(!options_.shared || names.size() == 1, "LockOptions::shared", "set",
                    "be used with one resource only");
    const auto* const required = nodes.required_clock();
    detail::require(!required || required == &clock, "clock", "not the clock of the nodes",
                    "be the same, because deadlines are instants of this clock");
    detail::require(options_.watchdog != loop_watchdog(), "LockOptions::watchdog", "loop_watchdog()",
                    "be a Watchdog, because the lock belongs to no loop");
    detail::require(!options_.watchdog || &options_.watchdog->clock() == &clock, "LockOptions::watchdog",
                    "made for another clock", "use the clock of the lock");
    state_ = std::make_shared<detail::LeaseState>(nodes, clock, std::move(names), options_, acquires);
}

Lock::~Lock() {
    release_quietly();
}

Lock& Lock::operator=(Lock&& other) noexcept {
    if (this == &other) return *this;
    release_quietly();
    nodes_ = other.nodes_;
    clock_ = other.clock_;
    entropy_ = other.entropy_;
    options_ = std::move(other.options_);
    LeaseView::operator=(std::move(other));
    return *this;
}

// ---- Acquiring

Result Lock::acquire(std::stop_token stop) {
    const auto& [attempts, delay] = options_.retry;
    return acquire_within({.attempts = attempts,
                           .stop = std::move(stop),
                           .queue_timeout = options_.queue_timeout.value_or((attempts - 1) * delay)});
}

Result Lock::try_acquire() {
    return acquire_within({.attempts = 1, .queue_timeout = {}});
}

Result Lock::acquire_by(Clock::time_point deadline, std::stop_token stop) {
    return acquire_within({.deadline = deadline, .stop = std::move(stop)});
}

void Lock::lock() {
    const auto result = acquire_within({.attempts = options_.retry.attempts, .wait_while_held = true});
    if (!result) throw Error(result.error(), result.message());
}

Result Lock::acquire_within(const algorithm::AcquireLimits& limits) {
    if (!state_) return Result{std::make_error_code(std::errc::invalid_argument)};  // moved from
    try {
        if (!in_owning_process())  // a lease of the parent of fork() does not belong to the child
            state_ = std::make_shared<detail::LeaseState>(*nodes_, *clock_, state_->names(), options_,
                                                          state_->acquires());
        flow::BlockingOperation operation{*nodes_};
        flow::AcquireLock acquire{operation, state_, *entropy_, limits};
        try {
            return acquire.take_result(flow::run_blocking(operation, acquire.run()));
        } catch (...) {  // no memory, or a Nodes of the user that throws
            release_what_is_left(*nodes_, acquire, *clock_);
            throw;
        }
    } catch (...) {
        return Result{flow::error_of_exception()};
    }
}

// ---- Extending

Result Lock::extend(std::chrono::milliseconds ttl) {
    detail::check_ttl("extend: ttl", ttl, options_.drift_factor, nodes_->node_timeout(),
                      nodes_->quarantine());
    if (!in_owning_process()) return Result{Errc::not_held};
    return run<flow::ExtendLock>(*nodes_, state_, ttl);
}

// ---- Releasing

Result Lock::release() noexcept {
    return release_current(flow::Replies::awaited);
}

void Lock::unlock() noexcept {
    (void)release_current(flow::Replies::not_awaited);
}

Result Lock::release_current(flow::Replies replies) noexcept {
    if (!in_owning_process()) return Result{Errc::not_held};
    return run<flow::ReleaseLock>(*nodes_, state_, state_->number_to_release(), replies);
}

void Lock::release_quietly() noexcept {
    if (in_owning_process() && !state_->lease().empty())
        (void)run<flow::ReleaseLock>(*nodes_, state_, state_->number(), flow::Replies::not_awaited);
}

}  // namespace redlock
