// Replaces pthread_mutex_lock() and pthread_mutex_unlock() for the simulation's own objects (ld --wrap). All
// fibers of a world share one thread. If a fiber blocked that thread for a mutex that another fiber holds, it
// would wait for ever.
#include "mutex_bypass.hpp"
#include "process.hpp"

#include <pthread.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace redlock::sim {
namespace {

/// A mutex that a fiber holds.
struct Held {
    pthread_mutex_t* mutex;
    std::vector<std::pair<Process*, Task*>> waiting;
};

/// This list never has more than a few elements.
thread_local std::vector<Held> held;
/// The mutexes that were locked under a MutexBypass although a fiber held them.
thread_local std::vector<pthread_mutex_t*> passed;

auto find(pthread_mutex_t* mutex) {
    return std::ranges::find(held, mutex, &Held::mutex);
}

/// Returns true if the caller must proceed without locking the mutex.
bool pass_or_wait(pthread_mutex_t* mutex) {
    auto* const process = Process::running();
    for (auto it = find(mutex); it != held.end(); it = find(mutex)) {
        if (!process || MutexBypass::active()) {
            MutexBypass::note_mutex_held();
            passed.push_back(mutex);
            return true;
        }
        it->waiting.emplace_back(process, process->current());
        process->wait();
    }
    if (process) held.push_back({mutex, {}});
    return false;
}

/// Returns true if there is nothing to unlock.
bool pass_or_wake(pthread_mutex_t* mutex) {
    if (const auto it = std::ranges::find(passed, mutex); it != passed.end()) {
        passed.erase(it);
        return true;
    }
    if (const auto it = find(mutex); it != held.end()) {
        const auto waiting = std::move(it->waiting);
        held.erase(it);
        for (const auto& [process, task] : waiting) process->wake(*task);
    }
    return false;
}

}  // namespace
}  // namespace redlock::sim

// NOLINTBEGIN(bugprone-reserved-identifier): ld requires these names
extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
    return redlock::sim::pass_or_wait(mutex) ? 0 : __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
    return redlock::sim::pass_or_wake(mutex) ? 0 : __real_pthread_mutex_unlock(mutex);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
