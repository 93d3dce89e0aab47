#include "retries.hpp"

#include <algorithm>
#include <utility>

namespace redlock::flow {

using namespace algorithm;

Retries::Retries(Operation& operation, Clock& clock, Entropy& entropy, const Retry& retry,
                 const AcquireLimits& limits, bool waits)
    : Steps(operation),
      clock_(clock),
      entropy_(entropy),
      retry_(retry),
      limits_(limits),
      round_limits_{.deadline = limits.deadline, .stop = limits.stop},
      waits_(waits) {}

Flow Retries::repeat() {
    int counted = 0;
    for (int attempts = 1;; ++attempts) {
        const auto start = clock_.now();
        if (limits_.stop.stop_requested()) co_return last().conclude(Errc::cancelled, attempts - 1).error();
        if (start >= limits_.deadline) co_return last_error();

        std::error_code error;
        {
            const auto round = make_in_frames([this] {
                return RoundResult{.tally = nodes().blank_tally(), .valid_until = {}, .ended = {}};
            });
            round_ = round.get();
            {
                const auto attempting = attempt(round_limits_);
                error = co_await attempting;
            }
            record(error, attempts);
        }

        const bool held = last_error() == Errc::held_by_other;
        counted = waits_ && held ? 0 : counted + 1;
        const bool again = error == Errc::deadline || worth_retrying(last());
        if (last() || counted >= limits_.attempts || last_attempt_ || !again) co_return last_error();
        const auto now = clock_.now();
        if (now >= limits_.deadline) co_return last_error();
        latest_ = latest_attempt(now, limits_.deadline, now - start);
        const auto waiting = held ? wait_while_held() : pause_at_random();
        co_await waiting;
    }
}

/// Records the result of an attempt. If the deadline has cut the attempt short, it says nothing about the
/// resource, so the result of the earlier attempt stays.
void Retries::record(std::error_code error, int attempts) {
    attempted(error);
    if (error == Errc::deadline && attempts > 1) return;
    last_.emplace(InPlace{[&] { return attempt_ ? attempt_->take_result(error) : Result{error}; }});
    // An attempt without a round has no nodes, and does not count.
    if (!last().nodes().empty()) last().conclude(error, attempts);
}

/// If `latest_` has cut the pause short, the next attempt is the last one.
Flow Retries::pause_at_random() {
    const auto wanted = clock_.now() + random_pause(retry_.delay, entropy_);
    last_attempt_ = wanted > latest_;
    co_await pause(clock_, std::min(latest_, wanted), limits_.stop);
    co_return std::error_code{};
}

}  // namespace redlock::flow
