// The work of a watchdog, turn by turn, without a thread: Watchdog lends it one; a test or a simulation turns
// it by hand.
//
// Locks that are due at about the same time, on the same Nodes, are extended in one round. No round goes on
// beyond the instant at which the next loss is to be told, of whatever lock: a node that hangs keeps no
// notice back.
#pragma once

#include <redlock/algorithm.hpp>
#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>
#include <redlock/result.hpp>
#include <redlock/watch.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redlock {

class Watchlist final : public Watcher {
public:
    /// How many extensions share a round at most.
    static constexpr std::size_t longest_batch = 256;

    explicit Watchlist(Clock& clock) : clock_(&clock) {}
    Watchlist(const Watchlist&) = delete;
    Watchlist& operator=(const Watchlist&) = delete;

    Clock& clock() noexcept override { return *clock_; }

    void watch(std::shared_ptr<Watch> watch) override {
        const auto plan = watch->plan();
        auto* const key = watch.get();
        const std::unique_lock guard{mutex_};
        entries_.insert_or_assign(key, Entry{std::move(watch), plan});
        if (plan.next() < asleep_until_) wake_.request_stop();
    }

    void unwatch(Watch& watch) noexcept override {
        std::unique_lock guard{mutex_};
        entries_.erase(&watch);
        while (std::ranges::find(under_way_, &watch) != under_way_.end()) {
            const auto landed = landed_.get_token();
            guard.unlock();
            clock_->sleep_until(Clock::never(), landed);
            guard.lock();
        }
    }

    /// Takes turns until `stop` is stopped.
    void run(const std::stop_token& stop) {
        const std::stop_callback interrupt{stop, [this] { wake(); }};
        while (!stop.stop_requested()) {
            turn();
            const auto [until, token] = bed_time(stop);
            clock_->sleep_until(until, token);
        }
    }

    /// Does what is most urgent now: tells the losses, or else makes one round of extensions. The answer:
    /// when the next turn is due.
    Clock::time_point turn() {
        if (const auto lost = take_lost(); !lost.empty()) {
            for (const auto& watch : lost) watch->tell(watch->loss_by_time());
        } else if (const auto batch = take_batch(); !batch.watches.empty()) {
            extend(batch.watches, batch.deadline);
        }
        const std::lock_guard guard{mutex_};
        return next_turn();
    }

private:
    using Watches = std::vector<std::shared_ptr<Watch>>;

    struct Entry {
        std::shared_ptr<Watch> watch;
        WatchPlan plan;  // of the last look: the lock may have been extended by its holder since
    };

    struct Loss {
        std::shared_ptr<Watch> watch;
        Result result;
    };

    /// What is extended in one round: all on the same Nodes.
    struct Batch {
        Watches watches{};
        Clock::time_point deadline = Clock::never();
    };

    /// Those whose loss is to be told now; they are watched no longer.
    Watches take_lost() {
        Watches lost;
        const std::lock_guard guard{mutex_};
        const auto now = clock_->now();
        for (auto& [key, entry] : entries_) {
            if (now < entry.plan.tell_at) continue;
            entry.plan = key->plan();
            if (now >= entry.plan.tell_at) lost.push_back(entry.watch);
        }
        for (const auto& watch : lost) entries_.erase(watch.get());
        return lost;
    }

    /// The one that is due first, if any is, and whoever can go with it.
    Batch take_batch() {
        Batch batch;
        const std::lock_guard guard{mutex_};
        const auto now = clock_->now();
        auto* const first = first_due(now);
        if (!first) return batch;
        std::vector<Entry*> company;
        for (auto& [key, entry] : entries_) {
            batch.deadline = std::min(batch.deadline, entry.plan.tell_at);
            if (entry.plan.extend_from <= now && &key->nodes() == first) company.push_back(&entry);
        }
        if (company.size() > longest_batch) {
            std::ranges::nth_element(company, company.begin() + longest_batch, {},
                                     [](const Entry* entry) { return entry->plan.extend_by; });
            company.resize(longest_batch);
        }
        batch.watches.reserve(company.size());
        under_way_.reserve(company.size());
        for (auto* const entry : company) {
            batch.watches.push_back(entry->watch);
            under_way_.push_back(entry->watch.get());
        }
        return batch;
    }

    /// The Nodes of the lock that is due first.
    Nodes* first_due(Clock::time_point now) {
        const Entry* first = nullptr;
        for (auto& [key, entry] : entries_) {
            if (now < entry.plan.extend_by) continue;
            entry.plan = key->plan();
            if (now < entry.plan.extend_by) continue;
            if (!first || entry.plan.extend_by < first->plan.extend_by) first = &entry;
        }
        return first ? &first->watch->nodes() : nullptr;
    }

    void extend(const Watches& watches, Clock::time_point deadline) {
        std::vector<Loss> losses;
        try {
            losses = ask_and_settle(watches, deadline);
        } catch (...) {  // no memory, or a Nodes of the user's own that breaks its contract
            for (const auto& watch : watches) watch->missed();
        }
        land(losses);
        for (const auto& [watch, result] : losses) watch->tell(result);
    }

    static std::vector<Lease> leases_of(const Watches& watches) {
        std::vector<Lease> leases;
        leases.reserve(watches.size());
        for (const auto& watch : watches) leases.push_back(watch->lease());
        return leases;
    }

    std::vector<Loss> ask_and_settle(const Watches& watches, Clock::time_point deadline) {
        const auto leases = leases_of(watches);  // the extensions look at their owners
        auto& nodes = watches.front()->nodes();
        const RoundLimits limits{.deadline = deadline};
        std::vector<Request> extensions;
        extensions.reserve(watches.size());
        for (std::size_t i = 0; i < watches.size(); ++i)
            extensions.push_back(algorithm::extending(watches[i]->claim(), leases[i]));
        std::vector<Tally> tallies(extensions.size(), nodes.blank_tally());
        const auto start = clock_->now();
        nodes.ask(extensions, limits, tallies);
        const auto ended = clock_->now();

        std::vector<Loss> losses;
        for (std::size_t i = 0; i < watches.size(); ++i) {
            const auto& watch = watches[i];
            algorithm::Ballot round{std::move(tallies[i]), algorithm::valid_until(start, watch->claim()),
                                    ended};
            auto result = watch->settle_own(std::move(round), limits);
            if (result.error() == Errc::lost) losses.push_back({watch, std::move(result)});
        }
        return losses;
    }

    /// The round is over: whoever waits for that may go on.
    void land(const std::vector<Loss>& losses) {
        std::stop_source landed;
        {
            const std::lock_guard guard{mutex_};
            for (auto* const watch : under_way_)
                if (const auto entry = entries_.find(watch); entry != entries_.end())
                    entry->second.plan = watch->plan();
            for (const auto& [watch, result] : losses) entries_.erase(watch.get());
            under_way_.clear();
            std::swap(landed, landed_);
        }
        landed.request_stop();
    }

    Clock::time_point next_turn() const {
        auto next = Clock::never();
        for (const auto& [key, entry] : entries_) next = std::min(next, entry.plan.next());
        return next;
    }

    std::pair<Clock::time_point, std::stop_token> bed_time(const std::stop_token& stop) {
        const std::lock_guard guard{mutex_};
        wake_ = std::stop_source{};
        if (stop.stop_requested()) wake_.request_stop();
        asleep_until_ = next_turn();
        return {asleep_until_, wake_.get_token()};
    }

    void wake() {
        const std::lock_guard guard{mutex_};
        wake_.request_stop();
    }

    Clock* const clock_;

    // Guarded by mutex_, which is never held across a round, a wait or a callback.
    std::mutex mutex_;
    std::unordered_map<Watch*, Entry> entries_{};
    std::vector<Watch*> under_way_{};  // in the round of this moment
    std::stop_source landed_{};        // stopped when that round is over
    std::stop_source wake_{};          // ends the sleep before the next turn
    Clock::time_point asleep_until_ = Clock::never();
};

}  // namespace redlock
