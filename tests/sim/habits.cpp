#include "habits.hpp"

#include <algorithm>
#include <string>

namespace redlock::sim {

void Habits::live() {
    for (int turn = 0; turn < plan_.turns; ++turn) {
        client_.sleep(dice_.about(plan_.least_ttl / 2));
        take_a_turn();
    }
}

void Habits::take_a_turn() {
    CheckedLock lock{client_, some_resources(), some_options()};
    const int rounds = dice_.between(1, 2);  // the same lock, acquired again
    for (int round = 0; round < rounds; ++round) {
        if (!acquire(lock)) continue;
        if (!lock.lock().lost().stop_possible())
            work(lock);
        else if (dice_.chance(0.3))
            hold_with_another(lock);
        else
            hold(lock);
        let_go(lock);
    }
}

bool Habits::acquire(CheckedLock& lock) {
    ambush();
    const auto span = dice_.about(2 * plan_.longest_ttl);
    if (dice_.chance(0.1)) {  // it is called off meanwhile, if it takes long
        std::stop_source stop;
        client_.after(span, [stop]() mutable { stop.request_stop(); });
        return static_cast<bool>(lock.acquire(stop.get_token()));
    }
    if (dice_.chance(0.4)) return static_cast<bool>(lock.acquire());
    if (dice_.chance(0.2)) return static_cast<bool>(lock.try_acquire());
    return static_cast<bool>(lock.acquire_for(span));
}

void Habits::work(CheckedLock& lock) {
    do {
        const auto span = static_cast<double>(nanoseconds{plan_.least_ttl}.count()) * plan_.works;
        client_.sleep(dice_.about(nanoseconds{static_cast<nanoseconds::rep>(span / 3)}));
        if (!lock.valid()) return;
        if (!dice_.chance(plan_.extends)) return;
        extend(lock);
    } while (dice_.chance(0.7));
}

/// While a watchdog extends it, and no longer than that.
void Habits::hold(CheckedLock& lock) {
    const auto ttl = static_cast<double>(nanoseconds{plan_.longest_ttl}.count());
    const auto span = nanoseconds{static_cast<nanoseconds::rep>(ttl * plan_.watched_works / 3)};
    const auto end = client_.process().now() + dice_.about(span);
    while (client_.process().now() < end && lock.valid()) {
        const auto next = client_.process().now() + dice_.about(plan_.longest_ttl);
        client_.clock().sleep_until(std::min(next, end), lock.lock().lost());
        if (dice_.chance(plan_.extends / 4)) extend(lock);
    }
}

void Habits::hold_with_another(CheckedLock& lock) {
    CheckedLock other{client_, some_resources(), some_options()};
    if (acquire(other)) hold(other);
    hold(lock);
    if (dice_.chance(0.5)) let_go(other);
}

void Habits::extend(CheckedLock& lock) {
    // Sometimes in the last moment.
    if (dice_.chance(plan_.last_moment))
        client_.sleep(lock.remaining() - dice_.between(0ns, 3 * plan_.world.weather.mean));
    const auto ttl = dice_.chance(0.7) ? plan_.longest_ttl : plan_.least_ttl;
    ambush();
    (void)lock.extend(ttl);
}

void Habits::let_go(CheckedLock& lock) {
    if (dice_.chance(0.2)) client_.sleep(plan_.longest_ttl);  // forgets it
    if (dice_.chance(0.2)) return;  // leaves it to the destructor or the next acquire
    ambush();
    if (const auto result = lock.release(); result.error() == Errc::no_quorum) (void)lock.release();
}

void Habits::ambush() {
    if (client_.process().alive()) storm_.ambush();
}

std::vector<std::string> Habits::some_resources() {
    std::vector<std::string> result;
    const int several = dice_.chance(0.3) ? 2 : 1;
    for (int i = 0; i < several; ++i)
        result.push_back("r" + std::to_string(dice_.between(1, plan_.resources)));
    return result;
}

LockOptions Habits::some_options() {
    LockOptions options{.ttl = dice_.chance(0.5) ? plan_.longest_ttl : plan_.least_ttl,
                        .retry = {.attempts = plan_.attempts, .delay = plan_.retry_delay},
                        .drift_factor = plan_.drift_factor,
                        .fencing = plan_.fencing};
    if (dice_.chance(plan_.watched)) options.watchdog = client_.watchdog();
    if (options.watchdog && dice_.chance(plan_.limited))
        options.max_hold = dice_.between(nanoseconds{options.ttl} / 4, 4 * nanoseconds{options.ttl});
    return options;
}

}  // namespace redlock::sim
