// The watchdog of a thread: takes the turns of a RenewalQueue, and blocks while it makes a round.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/memory.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/detail/renewer.hpp>

#include "renewal_queue.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace redlock::detail {

class BlockingRenewals final : public Renewer, NotCopied {
public:
    explicit BlockingRenewals(Clock& clock) : queue_(clock) {}

    Clock& clock() noexcept override { return queue_.clock(); }

    void add(Acquisition acquisition) override {
        const auto due = queue_.add(std::move(acquisition));
        const std::lock_guard guard{mutex_};
        if (due < wakeup_at_) wake_.request_stop();
    }

    void remove(const Acquisition& acquisition) noexcept override {
        queue_.remove(acquisition);
        // A callback in the thread that takes the turns must not wait for the end of its own turn. If it is a
        // callback of an Observer, which is called at the end of a round, all extensions were sent before.
        if (renewal_context().renewals == this) return;
        std::unique_lock guard{mutex_};
        while (batch_ != nullptr && batch_->has(*acquisition.state)) {
            const auto ended = batch_->ended.get_token();
            guard.unlock();
            clock().sleep_until(Clock::never(), ended);
            guard.lock();
        }
    }

    /// Returns true if there is no lease, and no turn is under way.
    bool idle() const noexcept {
        const std::lock_guard guard{mutex_};
        return queue_.empty() && !busy_;
    }

    /// Takes turns until a stop is requested on `stop`.
    void run(const std::stop_token& stop) {
        const std::stop_callback interrupt{stop, [this] {
                                               const std::lock_guard guard{mutex_};
                                               wake_.request_stop();
                                           }};
        while (!stop.stop_requested()) {
            (void)turn();
            const auto [until, token] = next_wakeup(stop);
            clock().sleep_until(until, token);
        }
    }

    /// Takes one turn: reports the losses that are due; if there are none, makes one round of extensions.
    /// Returns when the next turn is due.
    Clock::time_point turn() {
        const RenewalScope scope{{.renewals = this}};
        set_busy(true);
        if (!queue_.report_losses()) extend();
        set_busy(false);
        return queue_.next_turn();
    }

private:
    using Batch = RenewalQueue::Batch;

    void extend() {
        std::optional<Batch> batch;
        {  // remove() must not run in between, because it would not wait for the end of this batch
            const std::lock_guard guard{mutex_};
            batch = queue_.begin_batch();
            if (!batch) return;
            batch_ = &*batch;
        }
        try {
            batch->nodes().ask(batch->requests, batch->limits, batch->tallies);
            queue_.apply_votes(*batch);
            batch->describe_holders();
        } catch (...) {  // no memory, or a Nodes of the user that throws
            RenewalQueue::postpone(*batch);
        }
        {
            const std::lock_guard guard{mutex_};
            batch_ = nullptr;
        }
        queue_.end(*batch);  // wakes the releases that wait in remove()
    }

    /// Returns when the next turn is due, and a token that ends the sleep before. If there is no memory for a
    /// new token, returns a short sleep instead.
    std::pair<Clock::time_point, std::stop_token> next_wakeup(const std::stop_token& stop) {
        const std::lock_guard guard{mutex_};
        wakeup_at_ = queue_.next_turn();
        if (wake_.stop_requested() && !has_memory_for([this] { wake_ = std::stop_source{}; }))
            return {std::min(wakeup_at_, clock().now() + std::chrono::milliseconds{10}), stop};
        if (stop.stop_requested()) wake_.request_stop();
        return {wakeup_at_, wake_.get_token()};
    }

    void set_busy(bool busy) noexcept {
        const std::lock_guard guard{mutex_};
        busy_ = busy;
    }

    RenewalQueue queue_;

    // Guarded by mutex_, which is never held during a round, a wait or a callback
    mutable std::mutex mutex_{};
    const Batch* batch_ = nullptr;  // its round is under way
    std::stop_source wake_{};       // ends the sleep before the next turn
    Clock::time_point wakeup_at_ = Clock::never();
    bool busy_ = false;  // a turn is under way
};

}  // namespace redlock::detail
