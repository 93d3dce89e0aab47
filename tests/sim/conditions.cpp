// Replaces the functions of std::condition_variable, and the steady clock, for the simulation's own objects
// (ld --wrap). A fiber that waits for a condition must not block the thread that all fibers of a world share.
// It waits in virtual time instead. Its mutex is one of mutexes.cpp.
#include "process.hpp"

#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace redlock::sim {
namespace {

/// A fiber that waits for a condition.
struct Sleeper {
    const void* condition;  // std::condition_variable has the address of its pthread_cond_t
    Process& process;
    Task& task;
    bool notified = false;
};

/// In the order in which they began to wait.
thread_local std::vector<Sleeper*> sleepers;

/// Blocks until the fiber is notified or the instant has come. Returns true if it was notified. The caller
/// has unlocked its mutex, which cannot let a notification slip through: another fiber runs only while this
/// one waits. If the process crashes, its fibers end the waits of one another, as they do without a crash.
template <class Unlock, class Lock>
bool sleep(const void* condition, Instant until, Unlock unlock, Lock lock) {
    auto& process = *Process::running();
    Sleeper own{condition, process, *process.current()};
    sleepers.push_back(&own);
    unlock();
    process.fault_point();
    while (!own.notified && process.timeline().now() < until && !process.ends_all_waits())
        process.wait(until);
    std::erase(sleepers, &own);
    lock();
    if (process.ends_all_waits()) throw Process::Crashed{};
    return own.notified;
}

/// The notifying thread may be suspended just before or after that.
void notify_one(const void* condition) {
    auto& process = *Process::running();
    process.fault_point();
    for (auto* const it : sleepers)
        if (it->condition == condition && !it->notified) {
            it->notified = true;
            it->process.wake(it->task);
            break;
        }
    process.fault_point();
}

}  // namespace
}  // namespace redlock::sim

// NOLINTBEGIN(bugprone-reserved-identifier): ld requires these names
extern "C" {

using redlock::sim::Instant;
using redlock::sim::Process;
using UniqueLock = std::unique_lock<std::mutex>;

#define REAL_WAIT __real__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE
#define WRAP_WAIT __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE
#define REAL_NOTIFY __real__ZNSt18condition_variable10notify_oneEv
#define WRAP_NOTIFY __wrap__ZNSt18condition_variable10notify_oneEv
#define REAL_NOW __real__ZNSt6chrono3_V212steady_clock3nowEv
#define WRAP_NOW __wrap__ZNSt6chrono3_V212steady_clock3nowEv

void REAL_WAIT(std::condition_variable* condition, UniqueLock& lock);
void WRAP_WAIT(std::condition_variable* condition, UniqueLock& lock);
void REAL_NOTIFY(std::condition_variable* condition);
void WRAP_NOTIFY(std::condition_variable* condition);
std::chrono::nanoseconds::rep REAL_NOW();
std::chrono::nanoseconds::rep WRAP_NOW();
int __real_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until);
int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until);

void WRAP_WAIT(std::condition_variable* condition, UniqueLock& lock) {
    if (!Process::running()) return REAL_WAIT(condition, lock);
    (void)redlock::sim::sleep(
        condition, Instant::max(), [&] { lock.unlock(); }, [&] { lock.lock(); });
}

void WRAP_NOTIFY(std::condition_variable* condition) {
    Process::running() ? redlock::sim::notify_one(condition) : REAL_NOTIFY(condition);
}

/// In a fiber, the steady clock shows the true time of the world.
std::chrono::nanoseconds::rep WRAP_NOW() {
    auto* const process = Process::running();
    return process ? process->timeline().now().count() : REAL_NOW();
}

int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until) {
    if (!Process::running()) return __real_pthread_cond_clockwait(condition, mutex, clock, until);
    const Instant instant = std::chrono::seconds{until->tv_sec} + std::chrono::nanoseconds{until->tv_nsec};
    const bool notified = redlock::sim::sleep(
        condition, instant, [&] { pthread_mutex_unlock(mutex); }, [&] { pthread_mutex_lock(mutex); });
    return notified ? 0 : ETIMEDOUT;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
