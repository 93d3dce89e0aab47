// The work of a watchdog: decides which leases are extended together in the next round, and which losses are
// reported before. The class does no I/O and never waits. The rounds are made by BlockingRenewals in a
// thread, and by loop::Renewals in an event loop.
//
// - A round ends when the next loss must be reported, so that a node that hangs delays no report.
// - Without memory, an extension is tried again after a pause, and a loss is reported nevertheless.
//
// renewal_plan.hpp decides when a lease is due, and lease_state.hpp decides what a round means for it. A
// *pass* of the queue reports losses, or makes one round for a *batch* of leases. A lease is *in flight*
// while the round of its batch is under way.
#pragma once

#include <redlock/algorithm/algorithm.hpp>
#include <redlock/clock.hpp>
#include <redlock/detail/memory.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/nodes.hpp>

#include "lease_state.hpp"
#include "renewal_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace redlock::detail {

class RenewalQueue : NotCopied {
public:
    /// The largest number of leases that are extended in one round.
    static constexpr std::size_t longest_batch = 256;

    /// The leases that are extended in one round, and that round. A batch has all that end_batch() needs, so
    /// that end_batch() allocates nothing.
    struct Batch {
        struct Extended : Acquisition {
            Lease lease;  // when the batch began
        };
        std::vector<Extended> leases{};
        std::vector<Request> requests{};
        std::vector<Tally> tallies{};
        RoundLimits limits{};
        Clock::time_point start{};
        /// A stop is requested when the round has ended. (With an initializer here, the constructor would be
        /// noexcept for clang++ 14, although this member allocates memory.)
        std::stop_source ended;

        Nodes& nodes() const { return leases.front().state->terms.nodes; }
        bool has(const LeaseState& lease) const noexcept {
            return std::ranges::any_of(leases, [&](const auto& it) { return it.state.get() == &lease; });
        }
    };

    explicit RenewalQueue(Clock& clock) : clock_(&clock) {}

    /// Begins to extend an acquisition, see Renewer::add(). Returns when its next pass is due.
    Clock::time_point add(Acquisition acquisition) {
        const auto plan = acquisition.state->plan(acquisition.number);
        if (plan.next() == Clock::never())
            return plan.next();  // a callback of lost() has released it meanwhile
        const std::lock_guard guard{mutex_};
        if (auto* const entry = find_locked(acquisition.state.get()))
            *entry = Entry{std::move(acquisition), plan};
        else
            entries_.push_back({std::move(acquisition), plan});
        return plan.next();
    }

    /// Ends the extension of an acquisition. If a round that extends it is under way, returns a token on
    /// which a stop is requested when this round has ended, and otherwise one without a stop state.
    std::stop_token remove(const Acquisition& acquisition) noexcept {
        const std::lock_guard guard{mutex_};
        auto* const entry = find_locked(acquisition.state.get());
        if (entry && entry->acquisition.number <= acquisition.number) (void)take_locked(*entry);
        const bool is_under_way = batch_ && batch_->has(*acquisition.state);
        return is_under_way ? batch_->ended.get_token() : std::stop_token{};
    }

    /// Returns true if there is no lease.
    bool empty() const noexcept {
        const std::lock_guard guard{mutex_};
        return entries_.empty();
    }

    // ---- The parts of a pass, for the thread that makes the passes.

    /// Returns when the next pass is due.
    Clock::time_point next_pass() const noexcept { return earliest(&RenewalPlan::next); }

    /// Returns when the next loss is due, unless its lease is extended before.
    Clock::time_point next_loss() const noexcept { return earliest(&RenewalPlan::notify_at); }

    /// Reports the losses that are due, one after the other, and returns whether there was any. Each lease is
    /// checked right before its report, because it may have been released or acquired again during the report
    /// before. May be called while a batch is under way, even for a lease of this batch. Needs no memory.
    bool report_losses() noexcept {
        bool reported = false;
        for (auto lost = take_lost(); lost.state; lost = take_lost()) {
            lost.state->report_loss(lost.number);
            reported = true;
        }
        return reported;
    }

    /// Takes the leases that can be extended now into a batch, if one of them is due. Returns true if there
    /// is a batch now. Only one can be under way. Without memory there is none, and the leases that are due
    /// are tried again after a pause.
    bool begin_batch() noexcept {
        const std::lock_guard guard{mutex_};
        if (!has_memory_for([this] { take_batch_locked(); })) postpone_due_locked();
        return has_batch();
    }

    /// Returns true if a batch is under way.
    bool has_batch() const noexcept { return batch_.has_value(); }

    /// Goes on with the round of the batch by a call of `ask`, which returns true once the round is over. The
    /// batch then ends: each lease gets its votes, and the holder descriptions are written anew, because they
    /// expire with the old ttl. If the round has failed without votes, the leases are tried again after a
    /// pause.
    template <class Ask>
    void go_on(Ask ask) noexcept {
        try {
            if (!ask(*batch_)) return;
            const auto ended = clock_->now();
            for (std::size_t i = 0; i < batch_->leases.size(); ++i) {
                const auto& it = batch_->leases[i];
                const auto until = algorithm::valid_until(batch_->start, it.state->request());
                it.state->apply_renewal(it.number, {std::move(batch_->tallies[i]), until, ended},
                                        batch_->limits);
            }
            for (const auto& it : batch_->leases)
                it.state->describe_holder(it.lease, it.state->terms.options.ttl, batch_->limits.deadline);
        } catch (...) {  // no memory, or a Nodes of the user that throws
            for (const auto& it : batch_->leases) it.state->postpone(it.number);
        }
        end_batch();
    }

    /// Ends the batch, if there is one. Its leases can be extended again.
    void end_batch() noexcept {
        std::optional<Batch> ended;  // is destroyed when the mutex is unlocked
        {
            const std::lock_guard guard{mutex_};
            ended = std::exchange(batch_, std::nullopt);
            for (auto& entry : entries_)
                if (std::exchange(entry.in_flight, false)) entry.plan = entry.new_plan();
        }
        if (ended) ended->ended.request_stop();
    }

private:
    struct Entry {
        Acquisition acquisition;
        RenewalPlan plan;  // may be out of date, because the holder may have extended the lease
        bool in_flight = false;

        RenewalPlan new_plan() const { return acquisition.state->plan(acquisition.number); }
    };

    /// Returns the first of these instants of all plans.
    template <class Instant>
    Clock::time_point earliest(Instant instant) const noexcept {
        const std::lock_guard guard{mutex_};
        auto next = Clock::never();
        for (const auto& entry : entries_) next = std::min(next, std::invoke(instant, entry.plan));
        return next;
    }

    Entry* find_locked(const LeaseState* lease) {
        const auto entry =
            std::ranges::find(entries_, lease, [](const Entry& it) { return it.acquisition.state.get(); });
        return entry == entries_.end() ? nullptr : &*entry;
    }

    Acquisition take_locked(Entry& entry) noexcept {
        std::swap(entry, entries_.back());
        auto acquisition = std::move(entries_.back().acquisition);
        entries_.pop_back();
        return acquisition;
    }

    /// Removes a lease whose loss must be reported now, and returns it; empty if there is none.
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

    void take_batch_locked() {
        const auto now = clock_->now();
        auto next_loss = Clock::never();
        std::vector<Entry*> extended;
        bool is_due = false;  // one of them cannot wait any longer
        for (auto& entry : entries_) {
            // The plan may be out of date, because a stop may have been requested since.
            if (entry.plan.extend_from <= now) entry.plan = entry.new_plan();
            next_loss = std::min(next_loss, entry.plan.notify_at);
            if (entry.plan.extend_from > now) continue;
            is_due = is_due || entry.plan.extend_by <= now;
            extended.push_back(&entry);
        }
        if (!is_due) return;
        if (extended.size() > longest_batch) {
            std::ranges::nth_element(extended, extended.begin() + longest_batch, {},
                                     [](const Entry* entry) { return entry->plan.extend_by; });
            extended.resize(longest_batch);
        }
        const auto size = extended.size();
        Batch batch;
        batch.limits.deadline = next_loss;
        batch.leases.reserve(size);  // the requests have views of their owners
        batch.requests.reserve(size);
        for (const auto* const entry : extended) {
            const auto& [state, number] = entry->acquisition;
            batch.leases.push_back({entry->acquisition, state->lease(number)});
            batch.requests.push_back(algorithm::extend_request(state->request(), batch.leases.back().lease));
        }
        batch.tallies.assign(size, batch.nodes().blank_tally());
        batch.start = clock_->now();
        batch_ = std::move(batch);
        for (auto* const entry : extended) entry->in_flight = true;
    }

    /// Tries the leases that are due again after a pause.
    void postpone_due_locked() noexcept {
        const auto now = clock_->now();
        for (auto& entry : entries_) {
            if (now < entry.plan.extend_by) continue;
            entry.acquisition.state->postpone(entry.acquisition.number);
            entry.plan = entry.new_plan();
        }
    }

    Clock* const clock_;

    // Guarded by mutex_, which is never held during a callback
    mutable std::mutex mutex_{};
    std::vector<Entry> entries_{};
    std::optional<Batch> batch_{};  // is set and reset by the thread that makes the passes
};

}  // namespace redlock::detail
