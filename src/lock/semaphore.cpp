// Semaphore and AsyncSemaphore: check their arguments, and make the lock of which each acquisition acquires
// one slot.
#include <redlock/async_semaphore.hpp>
#include <redlock/semaphore.hpp>

#include "../wire/key_names.hpp"
#include "lease_state.hpp"
#include "option_checks.hpp"

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
    : Lock(nodes, slots_of(name, limit), checked(std::move(options)), clock, entropy, detail::Acquires::one) {
}

AsyncSemaphore::AsyncSemaphore(AsyncNodes& nodes, std::string_view name, std::size_t limit,
                               LockOptions options)
    : AsyncLock(nodes, slots_of(name, limit), checked(std::move(options)), detail::Acquires::one) {}

}  // namespace redlock
