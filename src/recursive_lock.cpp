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
