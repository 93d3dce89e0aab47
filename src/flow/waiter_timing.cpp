#include "waiter_timing.hpp"

#include <redlock/algorithm/waiting.hpp>
#include <redlock/retry.hpp>

#include "../round/back_off.hpp"

#include <cstddef>

namespace redlock::flow {

using namespace algorithm;

WaiterTiming::WaiterTiming(Clock::time_point now, std::chrono::milliseconds longest_pause, Entropy& entropy)
    : longest_pause_(longest_pause),
      entropy_(entropy),
      last_attempt_(now),
      attempt_due_(now + random_pause(longest_without_attempt, entropy)),
      holder_seen_(now) {}

void WaiterTiming::begin_turn(Clock::time_point now) {
    holder_seen_ = last_attempt_ = now;
    if (attempt_due_ <= now) attempt_due_ = now + random_pause(longest_without_attempt, entropy_);
}

bool WaiterTiming::begins_attempt(const QueuePlace& place, Clock::time_point now) {
    if (place.held == QueuePlace::Held::by_holder) {
        holder_seen_ = now;
        attempted_without_holder_ = false;
    }
    const bool reserved = place.held == QueuePlace::Held::by_waiter;
    const bool first = place.in_front == 0 && !reserved && now - last_attempt_ >= poll_interval;
    const auto later = attempt_spacing * static_cast<int>(std::min<std::size_t>(place.in_front, 1000));
    const bool nobody_comes = !attempted_without_holder_ && now - holder_seen_ >= 2 * poll_interval + later;
    attempted_without_holder_ = attempted_without_holder_ || nobody_comes;
    return first || nobody_comes || now >= attempt_due_;
}

Clock::time_point WaiterTiming::next_question(const QueuePlace& place, Clock::time_point now) {
    using namespace std::chrono_literals;
    // Each waiter in front makes the interval longer by a sixteenth, until it is four times as long.
    const auto sixteenths = static_cast<int>(16 + std::min<std::size_t>(place.in_front, 48));
    auto next = now + (place.in_front == 0 ? short_pause() : poll_interval * sixteenths / 16);
    // Only the first four waiters ask when the key expires, and not all at the same time.
    constexpr std::size_t nearly_first = 4;
    if (place.held_for >= 0ms && place.in_front < nearly_first)
        next = std::min(next, now + place.held_for + 1ms);
    // If the resource is free, dead waiters are in front. One question removes a limited number of them, so
    // the waiter asks again at once, but not without end.
    constexpr int most_in_a_row = 16;
    free_in_a_row_ = place.held == QueuePlace::Held::by_nobody ? free_in_a_row_ + 1 : 0;
    if (free_in_a_row_ > 0 && free_in_a_row_ <= most_in_a_row) next = may_reserve_from_;
    return std::max(next, now + shortest_sleep);
}

void WaiterTiming::end_attempt(Clock::time_point now) {
    last_attempt_ = now;
    attempt_due_ = now + random_pause(longest_without_attempt, entropy_);
}

void WaiterTiming::failed_when_reserved(ReservedBy by, Clock::duration took) {
    using namespace std::chrono_literals;
    if (++failed_when_reserved_ <= 1) return;
    const detail::BackOff pauses{.shortest = took,
                                 .longest = std::clamp<Clock::duration>(longest_pause_, shortest_sleep, 10s)};
    may_reserve_from_ = last_attempt_ + pauses.pause(failed_when_reserved_, entropy_);
    if (by == ReservedBy::another_client) may_come_from_ = may_reserve_from_;
}

Clock::duration WaiterTiming::short_pause() const {
    return std::min(random_pause(longest_pause_, entropy_), poll_interval);
}

}  // namespace redlock::flow
