// RecursiveLock::lock(), which throws if the lock cannot be acquired, as std::lock_guard requires.
#include <redlock/recursive_lock.hpp>

namespace redlock {

void RecursiveLock::lock() {
    const auto result = enter([&] {
        lock_.lock();
        return Result{std::error_code{}};
    });
    if (!result) throw Error(result.error(), result.message());
}

}  // namespace redlock
