// Decides when a waiter asks its home node, and when it makes an attempt although nobody has woken it.
// docs/waiting.md has these times, and their reasons. The flows of PlaceInQueue report what happens, and
// when.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace redlock::flow {

/// How a resource came to be reserved for a waiter.
enum class ReservedBy : std::uint8_t { another_client, its_question };

class WaiterTiming {
public:
    /// The waiter begins to wait at `now`. `longest_pause` is the delay of LockOptions::retry. The entropy
    /// must outlive the object.
    WaiterTiming(Clock::time_point now, std::chrono::milliseconds longest_pause, Entropy& entropy);

    /// Records that it is the turn of this waiter: its questions go to the home node from now on. The time
    /// without an attempt and the time without a holder begin now, and an attempt that was due before is due
    /// in 7 to 14 s.
    void begin_turn(Clock::time_point now);

    /// Records that the waiter has come to another home node. If it is the first there, it makes no attempt
    /// for a poll interval, because older waiters may come there later.
    void arrive(Clock::time_point now) noexcept { last_attempt_ = now; }

    /// Records a report of the home node. Returns true if the waiter makes an attempt now, although it was
    /// not woken. An attempt because the node has reported no holder is made once until it reports one again.
    bool begins_attempt(const QueuePlace& place, Clock::time_point now);

    /// Returns when to ask the home node again if no message comes. `place` is its last report. Is called
    /// once for each report.
    Clock::time_point next_question(const QueuePlace& place, Clock::time_point now);

    /// Records the end of an attempt. The next one is due in 7 to 14 s.
    void end_attempt(Clock::time_point now);

    /// Records, after end_attempt(), that an attempt has found another holder although the resource was
    /// reserved, and how long it took. From the second call on, a *pause* begins. In the pause, a question
    /// must not reserve, and after an attempt that another client has caused, a message leads to none.
    void failed_when_reserved(ReservedBy by, Clock::duration took);

    /// Returns when an attempt is made whatever the home node reports.
    Clock::time_point attempt_due() const noexcept { return attempt_due_; }
    /// Returns true if a question may reserve the resource for this waiter.
    bool may_reserve(Clock::time_point now) const noexcept { return now >= may_reserve_from_; }
    /// Returns from when on the waiter may make an attempt because another client has woken it.
    Clock::time_point may_come_from() const noexcept { return std::min(may_come_from_, attempt_due_); }
    /// Returns a random pause of LockOptions::retry, but at most a poll interval.
    Clock::duration short_pause() const;

private:
    const std::chrono::milliseconds longest_pause_;
    Entropy& entropy_;
    Clock::time_point last_attempt_;  // when it ended, or the turn or the stay began
    Clock::time_point attempt_due_;
    Clock::time_point holder_seen_;          // when the home node last reported a holder
    bool attempted_without_holder_ = false;  // an attempt was made because no holder was reported since
    int free_in_a_row_ = 0;                  // reports that the resource is free but not reserved for us
    int failed_when_reserved_ = 0;
    Clock::time_point may_reserve_from_{};
    Clock::time_point may_come_from_{};
};

}  // namespace redlock::flow
