#include "workload.hpp"

#include "checked_semaphore.hpp"

#include <algorithm>
#include <string>

namespace redlock::sim {

void Workload::run(const std::stop_token& stop) {
    for (int turn = 0; turn < plan_.turns && !stop.stop_requested(); ++turn) {
        client_.sleep(rng_.about(std::chrono::duration_cast<milliseconds>(plan_.least_ttl * plan_.rests)));
        plan_.slots > 0 ? take_a_slot() : take_a_turn();
    }
}

void Workload::take_a_slot() {
    auto options = some_options();
    options.fair = options.shared = false;
    CheckedSemaphore semaphore{client_, "s", static_cast<std::size_t>(plan_.slots), options};
    inject_before_verb();
    if (!(rng_.chance(0.5) ? semaphore->acquire() : semaphore->acquire_for(rng_.about(plan_.longest_ttl))))
        return;
    client_.checker().slot_acquired();
    do {
        client_.sleep(rng_.about(plan_.least_ttl / 2));
        inject_before_verb();
    } while (rng_.chance(plan_.extends) && semaphore->extend());
    if (rng_.chance(0.7)) (void)semaphore->release();
}

void Workload::take_a_turn() {
    CheckedLock lock{some_lock()};
    const int rounds = rng_.between(1, 2);  // acquires the same lock once or twice
    for (int round = 0; round < rounds; ++round) {
        if (!acquire(lock)) continue;
        if (!lock.lock().lost().stop_possible())
            work(lock);
        else if (rng_.chance(0.3))
            hold_with_another(lock);
        else
            hold(lock);
        release(lock);
    }
}

bool Workload::acquire(CheckedLock& lock) {
    inject_before_verb();
    const auto span = rng_.about(2 * plan_.longest_ttl);
    if (rng_.chance(0.1)) {  // cancelled if it takes long
        std::stop_source stop;
        client_.after(span, [stop]() mutable { stop.request_stop(); });
        return static_cast<bool>(lock.acquire(stop.get_token()));
    }
    if (rng_.chance(0.4)) return static_cast<bool>(lock.acquire());
    if (rng_.chance(0.2)) return static_cast<bool>(lock.try_acquire());
    return static_cast<bool>(lock.acquire_for(span));
}

void Workload::work(CheckedLock& lock) {
    do {
        const auto span = static_cast<double>(nanoseconds{plan_.least_ttl}.count()) * plan_.works;
        client_.sleep(rng_.about(nanoseconds{static_cast<nanoseconds::rep>(span / 3)}));
        if (!lock.valid()) return;
        if (!rng_.chance(plan_.extends)) return;
        extend(lock);
    } while (rng_.chance(0.7));
}

/// Holds the lock as long as a watchdog extends it.
void Workload::hold(CheckedLock& lock) {
    const auto ttl = static_cast<double>(nanoseconds{plan_.longest_ttl}.count());
    const auto span = nanoseconds{static_cast<nanoseconds::rep>(ttl * plan_.watched_works / 3)};
    const auto end = client_.process().now() + rng_.about(span);
    while (client_.process().now() < end && lock.valid()) {
        const auto next = client_.process().now() + rng_.about(plan_.longest_ttl);
        client_.clock().sleep_until(std::min(next, end), lock.lock().lost());
        if (rng_.chance(plan_.extends / 4)) extend(lock);
    }
}

void Workload::hold_with_another(CheckedLock& lock) {
    CheckedLock other{some_lock()};
    if (acquire(other)) hold(other);
    hold(lock);
    if (rng_.chance(0.5)) release(other);
}

void Workload::extend(CheckedLock& lock) {
    // Sometimes extends in the last moment.
    if (rng_.chance(plan_.last_moment))
        client_.sleep(lock.remaining() - rng_.between(0ns, 3 * plan_.world.conditions.mean));
    const auto ttl = rng_.chance(0.7) ? plan_.longest_ttl : plan_.least_ttl;
    inject_before_verb();
    (void)lock.extend(ttl);
}

void Workload::release(CheckedLock& lock) {
    if (rng_.chance(plan_.lapses)) client_.sleep(plan_.longest_ttl);  // sleeps until the lock has lapsed
    if (rng_.chance(0.2)) return;  // leaves the release to the destructor or the next acquire()
    inject_before_verb();
    if (rng_.chance(0.4)) return lock.unlock();
    if (const auto result = lock.release(); result.error() == Errc::no_quorum) (void)lock.release();
}

void Workload::inject_before_verb() {
    if (client_.process().alive()) faults_.inject_before_verb();
}

std::vector<std::string> Workload::some_resources() {
    std::vector<std::string> result;
    const int several = rng_.chance(0.3) ? 2 : 1;
    for (int i = 0; i < several; ++i)
        result.push_back(resource_name(plan_, rng_.between(1, plan_.resources)));
    return result;
}

CheckedLock Workload::some_lock() {
    auto resources = some_resources();
    auto options = some_options();
    if (options.shared) {
        resources.resize(1);
        options.fair = false;
        options.min_hold = 0ms;
    }
    return {client_, std::move(resources), std::move(options)};
}

LockOptions Workload::some_options() {
    LockOptions options{.ttl = rng_.chance(0.5) ? plan_.longest_ttl : plan_.least_ttl,
                        .retry = {.attempts = plan_.attempts, .delay = plan_.retry_delay},
                        .drift_factor = plan_.drift_factor,
                        .fencing = plan_.fencing,
                        .fair = rng_.chance(plan_.fair)};
    if (plan_.shared > 0) options.shared = rng_.chance(plan_.shared);
    if (rng_.chance(plan_.watched)) options.watchdog = client_.watchdog();
    if (options.watchdog && rng_.chance(plan_.limited))
        options.max_hold = rng_.between(nanoseconds{options.ttl} / 4, 4 * nanoseconds{options.ttl});
    if (rng_.chance(plan_.noted)) options.holder = client_.name();
    if (rng_.chance(plan_.kept)) options.min_hold = options.ttl * rng_.between(1, 1000) / 1000;
    return options;
}

}  // namespace redlock::sim
