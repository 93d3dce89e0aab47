// The work of a watchdog, turn by turn, without a thread: Watchdog gives it one for each Nodes; a test or a
// simulation takes the turns by hand.
//
// Leases that are due at about the same time, on the same Nodes, are extended in one round. No round goes on
// beyond the instant at which the next loss is to be reported, of whatever lease: a node that hangs delays no
// notice. Where there is no memory, a renewal is tried again after a pause, and a loss is reported all the
// same.
#pragma once

#include <redlock/algorithm.hpp>
#include <redlock/clock.hpp>
#include <redlock/detail/lease_state.hpp>
#include <redlock/detail/renewal_plan.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace redlock::detail {

class RenewalQueue final : public Renewer {
public:
    /// How many renewals share a round at most.
    static constexpr std::size_t longest_batch = 256;

    explicit RenewalQueue(Clock& clock) : clock_(&clock) {}
    RenewalQueue(const RenewalQueue&) = delete;
    RenewalQueue& operator=(const RenewalQueue&) = delete;

    Clock& clock() noexcept override { return *clock_; }

    void add(Acquisition acquisition) override {
        const auto plan = acquisition.lease->plan(acquisition.number);
        if (plan.next() == Clock::never()) return;  // released meanwhile, by a callback of lost()
        const std::lock_guard guard{mutex_};
        if (auto* const entry = find_locked(acquisition.lease.get()))
            *entry = Entry{std::move(acquisition), plan};
        else
            entries_.push_back({std::move(acquisition), plan});
        if (plan.next() < wakeup_at_) wake_.request_stop();
    }

    void remove(const Acquisition& acquisition) noexcept override {
        const auto* const lease = acquisition.lease.get();
        std::unique_lock guard{mutex_};
        if (auto* const entry = find_locked(lease); entry && entry->acquisition.number <= acquisition.number)
            (void)take_locked(*entry);
        if (renewal_context().queue == this) return;  // in its own round, which has sent what it sends
        while (std::ranges::find(in_flight_, lease) != in_flight_.end()) {
            const auto ended = round_ended_.get_token();
            guard.unlock();
            clock_->sleep_until(Clock::never(), ended);
            guard.lock();
        }
    }

    /// Whether there is nothing to do, and nothing being done.
    bool idle() const {
        const std::lock_guard guard{mutex_};
        return entries_.empty() && !busy_;
    }

    /// Takes turns until `stop` is stopped.
    void run(const std::stop_token& stop) {
        const std::stop_callback interrupt{stop, [this] { wake(); }};
        while (!stop.stop_requested()) {
            (void)turn();
            const auto [until, token] = next_wakeup(stop);
            clock_->sleep_until(until, token);
        }
    }

    /// Does what is most urgent now: reports the losses, or else makes one round of renewals. The answer:
    /// when the next turn is due.
    Clock::time_point turn() {
        const RenewalScope scope{{.queue = this}};
        set_busy(true);
        if (!tell_losses()) renew_due();
        set_busy(false);
        const std::lock_guard guard{mutex_};
        return next_turn_locked();
    }

private:
    struct Entry {
        Acquisition acquisition;
        RenewalPlan plan;  // when last looked at: the lease may have been extended by its holder since
        bool in_flight = false;

        RenewalPlan new_plan() const { return acquisition.lease->plan(acquisition.number); }
    };

    /// What is extended in one round: all on the same Nodes. Has all that the end of the round needs.
    struct Batch {
        std::vector<Acquisition> acquisitions{};
        Clock::time_point deadline = Clock::never();
        std::stop_source next_round_ended{};
    };

    Entry* find_locked(const LeaseState* lease) {
        const auto entry =
            std::ranges::find(entries_, lease, [](const Entry& it) { return it.acquisition.lease.get(); });
        return entry == entries_.end() ? nullptr : &*entry;
    }

    Acquisition take_locked(Entry& entry) noexcept {
        std::swap(entry, entries_.back());
        auto acquisition = std::move(entries_.back().acquisition);
        entries_.pop_back();
        return acquisition;
    }

    /// One at a time, for each is looked at right before it is told: while another was being told it may have
    /// been released, or acquired anew. Needs no memory.
    bool tell_losses() noexcept {
        bool told = false;
        for (auto lost = take_lost(); lost.lease; lost = take_lost()) {
            lost.lease->report_loss(lost.number);
            told = true;
        }
        return told;
    }

    /// One whose loss is to be reported now, if there is one; it is extended no longer.
    Acquisition take_lost() noexcept {
        const std::lock_guard guard{mutex_};
        const auto now = clock_->now();
        for (auto& entry : entries_) {
            if (now < entry.plan.notify_at) continue;
            entry.plan = entry.new_plan();
            if (now >= entry.plan.notify_at) return take_locked(entry);
        }
        return {};
    }

    void renew_due() {
        std::optional<Batch> batch;
        try {
            batch = take_batch();
        } catch (const std::bad_alloc&) {
            postpone_due();
        }
        if (!batch) return;
        try {
            renew(*batch);
        } catch (...) {  // no memory, or a Nodes of the user's own that breaks its contract
            for (const auto& [lease, number] : batch->acquisitions) lease->postpone(number);
        }
        finish_round(*batch);
    }

    /// The one that is due first, if any is, and all that can go with it.
    std::optional<Batch> take_batch() {
        const std::lock_guard guard{mutex_};
        const auto now = clock_->now();
        const auto* const nodes = first_due_locked(now);
        if (!nodes) return std::nullopt;
        Batch batch;
        std::vector<Entry*> due;
        for (auto& entry : entries_) {
            batch.deadline = std::min(batch.deadline, entry.plan.notify_at);
            if (entry.plan.extend_from > now || &entry.acquisition.lease->nodes() != nodes) continue;
            entry.plan = entry.new_plan();  // its holder may have been told to stop
            if (entry.plan.extend_from <= now) due.push_back(&entry);
        }
        if (due.empty()) return std::nullopt;
        if (due.size() > longest_batch) {
            std::ranges::nth_element(due, due.begin() + longest_batch, {},
                                     [](const Entry* entry) { return entry->plan.extend_by; });
            due.resize(longest_batch);
        }
        batch.acquisitions.reserve(due.size());
        in_flight_.reserve(due.size());
        for (auto* const entry : due) {
            entry->in_flight = true;
            batch.acquisitions.push_back(entry->acquisition);
            in_flight_.push_back(entry->acquisition.lease.get());
        }
        return batch;
    }

    /// The Nodes of the one that is due first.
    const Nodes* first_due_locked(Clock::time_point now) {
        const Entry* first = nullptr;
        for (auto& entry : entries_) {
            if (now < entry.plan.extend_by) continue;
            entry.plan = entry.new_plan();
            if (now < entry.plan.extend_by) continue;
            if (!first || entry.plan.extend_by < first->plan.extend_by) first = &entry;
        }
        return first ? &first->acquisition.lease->nodes() : nullptr;
    }

    void postpone_due() noexcept {
        const std::lock_guard guard{mutex_};
        const auto now = clock_->now();
        for (auto& entry : entries_) {
            if (now < entry.plan.extend_by) continue;
            entry.acquisition.lease->postpone(entry.acquisition.number);
            entry.plan = entry.new_plan();
        }
    }

    void renew(const Batch& batch) {
        const auto size = batch.acquisitions.size();
        std::vector<Lease> leases;  // the requests look at their owners
        std::vector<Request> requests;
        leases.reserve(size);
        requests.reserve(size);
        for (const auto& [lease, number] : batch.acquisitions) {
            leases.push_back(lease->lease(number));
            requests.push_back(algorithm::extend_request(lease->request(), leases.back()));
        }
        auto& nodes = batch.acquisitions.front().lease->nodes();
        std::vector<Tally> tallies(size, nodes.blank_tally());
        const RoundLimits limits{.deadline = batch.deadline};
        const auto start = clock_->now();
        nodes.ask(requests, limits, tallies);
        const auto ended = clock_->now();
        for (std::size_t i = 0; i < size; ++i) {
            const auto& [lease, number] = batch.acquisitions[i];
            lease->apply_renewal(
                number, {std::move(tallies[i]), algorithm::valid_until(start, lease->request()), ended},
                limits);
        }
        for (std::size_t i = 0; i < size; ++i) {
            const auto& lease = *batch.acquisitions[i].lease;
            lease.note_holder(leases[i], lease.request().ttl, batch.deadline);
        }
    }

    /// A release that waits for the end of the round may go on.
    void finish_round(Batch& batch) noexcept {
        {
            const std::lock_guard guard{mutex_};
            for (auto& entry : entries_)
                if (std::exchange(entry.in_flight, false)) entry.plan = entry.new_plan();
            in_flight_.clear();
            std::swap(round_ended_, batch.next_round_ended);
        }
        batch.next_round_ended.request_stop();
    }

    Clock::time_point next_turn_locked() const noexcept {
        auto next = Clock::never();
        for (const auto& entry : entries_) next = std::min(next, entry.plan.next());
        return next;
    }

    /// Until when to sleep, and what ends the sleep before. Without memory for that it is a short one.
    std::pair<Clock::time_point, std::stop_token> next_wakeup(const std::stop_token& stop) {
        const std::lock_guard guard{mutex_};
        wakeup_at_ = next_turn_locked();
        try {
            if (wake_.stop_requested()) wake_ = std::stop_source{};
        } catch (const std::bad_alloc&) {
            return {std::min(wakeup_at_, clock_->now() + std::chrono::milliseconds{10}), stop};
        }
        if (stop.stop_requested()) wake_.request_stop();
        return {wakeup_at_, wake_.get_token()};
    }

    void wake() noexcept {
        const std::lock_guard guard{mutex_};
        wake_.request_stop();
    }

    void set_busy(bool busy) noexcept {
        const std::lock_guard guard{mutex_};
        busy_ = busy;
    }

    Clock* const clock_;

    // Guarded by mutex_, which is never held across a round, a wait or a callback.
    mutable std::mutex mutex_{};
    std::vector<Entry> entries_{};
    std::vector<const LeaseState*> in_flight_{};  // in the round of this moment
    std::stop_source round_ended_{};              // stopped when that round is over
    std::stop_source wake_{};                     // ends the sleep before the next turn
    Clock::time_point wakeup_at_ = Clock::never();
    bool busy_ = false;  // with a turn
};

}  // namespace redlock::detail
