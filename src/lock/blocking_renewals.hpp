// The watchdog of a thread: makes the passes of a RenewalQueue, and blocks while it makes a round.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/memory.hpp>
#include <redlock/detail/renewer.hpp>

#include "renewal_queue.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stop_token>
#include <utility>

namespace redlock::detail {

class BlockingRenewals final : public Renewer {
public:
    explicit BlockingRenewals(Clock& clock) : Renewer(clock), queue_(clock) {}

    void add(Acquisition acquisition) override {
        const auto due = queue_.add(std::move(acquisition));
        const std::lock_guard guard{mutex_};
        if (due < wakeup_at_) wake_.request_stop();
    }

    void remove(const Acquisition& acquisition) noexcept override {
        const auto ended = queue_.remove(acquisition);
        // A callback in the thread that makes the passes must not wait for the end of its own pass. If it is
        // a callback of an Observer, which is called at the end of a round, all extensions were sent before.
        if (renewal_context().renewals == this) return;
        while (ended.stop_possible() && !ended.stop_requested()) clock().sleep_until(Clock::never(), ended);
    }

    /// Returns true if there is no lease, and no pass is under way.
    bool idle() const noexcept {
        const std::lock_guard guard{mutex_};
        return queue_.empty() && wakeup_at_ != in_pass;
    }

    /// Makes passes until a stop is requested on `stop`.
    void run(const std::stop_token& stop) {
        const std::stop_callback interrupt{stop, [this] {
                                               const std::lock_guard guard{mutex_};
                                               wake_.request_stop();
                                           }};
        while (!stop.stop_requested()) {
            (void)make_pass();
            const auto [until, token] = next_wakeup(stop);
            clock().sleep_until(until, token);
        }
    }

    /// Makes one pass: reports the losses that are due; if there are none, makes one round of extensions.
    /// Returns when the next pass is due.
    Clock::time_point make_pass() {
        const RenewalScope scope{{.renewals = this}};
        wake_up_at(in_pass);
        if (!queue_.report_losses() && queue_.begin_batch())
            queue_.go_on([](RenewalQueue::Batch& batch) {
                batch.nodes().ask(batch.requests, batch.limits, batch.tallies);
                return true;
            });
        return wake_up_at(queue_.next_pass());
    }

private:
    static constexpr auto in_pass = Clock::time_point::min();

    /// Sets the instant of the next wake-up, and returns it.
    Clock::time_point wake_up_at(Clock::time_point instant) noexcept {
        const std::lock_guard guard{mutex_};
        return wakeup_at_ = instant;
    }

    /// Returns when the next pass is due, and a token that ends the sleep before. If there is no memory for a
    /// new token, returns a short sleep instead.
    std::pair<Clock::time_point, std::stop_token> next_wakeup(const std::stop_token& stop) {
        const std::lock_guard guard{mutex_};
        wakeup_at_ = queue_.next_pass();
        if (wake_.stop_requested() && !has_memory_for([this] { wake_ = std::stop_source{}; }))
            return {std::min(wakeup_at_, clock().now() + std::chrono::milliseconds{10}), stop};
        if (stop.stop_requested()) wake_.request_stop();
        return {wakeup_at_, wake_.get_token()};
    }

    RenewalQueue queue_;

    // Guarded by mutex_, which is never held during a round, a wait or a callback
    mutable std::mutex mutex_{};
    std::stop_source wake_{};                       // ends the sleep before the next pass
    Clock::time_point wakeup_at_ = Clock::never();  // `in_pass` while a pass is under way
};

}  // namespace redlock::detail
