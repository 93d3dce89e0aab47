// Semaphore: runs the flow that acquires a slot (flow/acquire_slot.hpp), and holds the lock of this slot.
#include <redlock/acquire.hpp>
#include <redlock/algorithm.hpp>
#include <redlock/detail/command_encoding.hpp>
#include <redlock/detail/lease_state.hpp>
#include <redlock/semaphore.hpp>

#include "flow/acquire_slot.hpp"
#include "flow/flow.hpp"

#include <new>
#include <utility>

namespace redlock {
namespace {

std::vector<std::string> slots_of(std::string_view name, std::size_t limit) {
    detail::require(!name.empty(), "Semaphore: name", "empty", "have at least one byte");
    detail::require(limit >= 1 && limit <= detail::max_resources, "Semaphore: limit", limit, "be from 1 to ",
                    detail::max_resources);
    std::vector<std::string> slots;
    slots.reserve(limit);
    // `x` and `{x}` name the same semaphore, as in earlier versions. At worst there are fewer holders than
    // slots.
    const auto tagged = detail::has_hash_tag(name) ? std::string{name} : "{" + std::string{name} + "}";
    for (std::size_t slot = 0; slot < limit; ++slot)
        slots.push_back(tagged + ":slot:" + std::to_string(slot));
    return slots;
}

LockOptions checked(LockOptions options) {
    detail::require(!options.fair, "LockOptions::fair", "set",
                    "not be used with a Semaphore, whose slots have no queue");
    detail::require(!options.shared, "LockOptions::shared", "set",
                    "not be used with a Semaphore, which always has several holders");
    return options;
}

}  // namespace

Semaphore::Semaphore(Nodes& nodes, std::string_view name, std::size_t limit, LockOptions options,
                     Clock& clock, Entropy& entropy)
    : nodes_(&nodes),
      clock_(&clock),
      entropy_(&entropy),
      options_(checked(std::move(options))),
      slots_(slots_of(name, limit)),
      lock_(nodes, slots_.front(), options_, clock, entropy) {}

Result Semaphore::try_acquire() {
    return acquire({.attempts = 1});
}

Result Semaphore::acquire_by(Clock::time_point deadline, std::stop_token stop, bool until_deadline) {
    algorithm::AcquireLimits limits{.deadline = deadline, .stop = std::move(stop)};
    if (!until_deadline) limits.attempts = options_.retry.attempts;
    return acquire(limits);
}

void Semaphore::lock() {
    const auto result = acquire({.attempts = options_.retry.attempts, .wait_while_held = true});
    if (!result) throw Error(result.error(), result.message());
}

Result Semaphore::acquire(const algorithm::AcquireLimits& limits) {
    if (slots_.empty()) return Result{std::make_error_code(std::errc::invalid_argument)};  // moved from
    if (valid()) return Result{Errc::already_held};
    try {
        lock_.forget_earlier();
        auto request = lock_.state_->request();
        request.resources = slots_;
        flow::Operation operation{*nodes_};
        flow::AcquireSlot acquire{operation, *clock_, *entropy_, request, options_.retry, limits};
        const auto error = flow::run_blocking(operation, acquire.run());
        if (acquire.tried()) slot_ = acquire.slot();
        return error ? acquire.take_result() : hold(acquire.lease(), acquire.take_result());
    } catch (const std::bad_alloc&) {
        return Result{std::make_error_code(std::errc::not_enough_memory)};
    }
}

/// Begins the acquisition of slot(). Releases its lease if there is no memory.
Result Semaphore::hold(Lease lease, Result result) {
    auto lost = std::stop_source{std::nostopstate};
    try {
        if (options_.watchdog) lost = std::stop_source{};
        if (lock_.resource() != slots_[slot_])
            lock_ = Lock{*nodes_, slots_[slot_], options_, *clock_, *entropy_};
    } catch (...) {
        (void)algorithm::release_without_waiting(*nodes_, *clock_, Resources{slots_}.subspan(slot_, 1),
                                                 lease);
        throw;
    }
    return lock_.begin(lease, std::move(lost), std::move(result));
}

}  // namespace redlock
