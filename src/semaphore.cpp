// Semaphore: chooses a slot and acquires its lock. It tries a random slot first, and then those that a query
// reports as free.
#include <redlock/acquire.hpp>
#include <redlock/detail/command_encoding.hpp>
#include <redlock/semaphore.hpp>

#include <array>
#include <bit>
#include <new>

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

/// Returns a random number below `end`. If there are no random numbers, sets `error`.
std::size_t random_below(std::size_t end, Entropy& entropy, std::error_code& error) {
    std::array<std::byte, sizeof(std::uint64_t)> bytes{};
    error = entropy.fill(bytes);
    return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(bytes) % end);
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
        return algorithm::repeat(
            *clock_, limits, limits.wait_while_held, false,
            [&](const RoundLimits& round_limits) { return attempt(round_limits); },
            [&](Clock::time_point latest, bool) {
                return algorithm::pause(*clock_, *entropy_, options_.retry, latest, limits.stop);
            });
    } catch (const std::bad_alloc&) {
        return Result{std::make_error_code(std::errc::not_enough_memory)};
    }
}

/// Makes one attempt: tries a random slot, and if it is held, the slots that a query reports as free. The
/// report may be outdated, but only the votes of the nodes decide whether a slot is acquired.
Result Semaphore::attempt(const RoundLimits& limits) {
    std::error_code error;
    const auto first = random_below(slots_.size(), *entropy_, error);
    if (error) return Result{error};
    auto result = try_slot(first, limits);
    if (result.error() != Errc::held_by_other || slots_.size() == 1) return result;
    const auto taken = taken_slots(limits);
    for (std::size_t i = 1; i < slots_.size() && result.error() == Errc::held_by_other; ++i) {
        const auto slot = (first + i) % slots_.size();
        if (!taken[slot]) result = try_slot(slot, limits);
    }
    return result;
}

/// Makes one attempt to acquire the lock of this slot.
Result Semaphore::try_slot(std::size_t slot, const RoundLimits& limits) {
    slot_ = slot;
    lock_ = Lock{*nodes_, slots_[slot], options_, *clock_, *entropy_};
    return lock_.acquire(
        algorithm::AcquireLimits{.attempts = 1, .deadline = limits.deadline, .stop = limits.stop});
}

/// Returns for each slot whether it is certainly taken: so many nodes have a key for it that the others are
/// fewer than a quorum.
std::vector<bool> Semaphore::taken_slots(const RoundLimits& limits) {
    std::vector<std::size_t> keys(slots_.size());
    const auto tally = nodes_->ask({.command = {.verb = Verb::exist, .resources = slots_}}, limits);
    for (const auto& report : tally.reports())
        if (report.vote == Vote::granted && report.detail.size() == slots_.size())
            for (std::size_t slot = 0; slot < slots_.size(); ++slot)
                if (report.detail[slot] == '1') ++keys[slot];
    std::vector<bool> taken;
    taken.reserve(keys.size());
    for (const auto count : keys) taken.push_back(nodes_->size() - count < quorum(nodes_->size()));
    return taken;
}

}  // namespace redlock
