#include "redis/shared_rounds.hpp"

#include <redlock/detail/connection_choice.hpp>
#include <redlock/detail/verbs.hpp>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <utility>

namespace redlock {

using namespace std::chrono_literals;

/// A round and the thread that asks for it. It lies on the stack of this thread.
class SharedRounds::Asker {
public:
    Asker(std::span<const Request> of_round, const RoundLimits& its_limits, std::span<Tally> its_tallies)
        : requests(of_round), limits(its_limits), tallies(its_tallies) {}
    Asker(const Asker&) = delete;
    Asker& operator=(const Asker&) = delete;

    /// Sleeps until wake() was called. Returns false if that has not happened within `longest`.
    bool sleep_for(Clock::duration longest) {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, longest, [this] { return awake_; });
    }
    void sleep() {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [this] { return awake_; });
    }
    /// The thread may destroy the object as soon as it can lock the mutex. Therefore it is notified before
    /// the mutex is unlocked.
    void wake() noexcept {
        const std::lock_guard guard{mutex_};
        awake_ = true;
        changed_.notify_one();
    }

    const std::span<const Request> requests;
    const RoundLimits& limits;
    const std::span<Tally> tallies;

    bool is_new = true;  ///< in the inbox; guarded by the mutex of SharedRounds

    // Written by the leader, before it wakes the thread.
    bool has_ended = false;  ///< the leader has nothing to do for the round any more
    bool leads = false;
    bool over = false;  ///< the thread has been woken, or leads and has seen that the round has ended
    std::exception_ptr failure{};
    std::optional<NodeGroup::OngoingRound> round{};
    Clock::time_point until{};  ///< when the leader must continue with the round at the latest
    /// The time of a node was over when this wait began. The next advance() gives the node up, so the leader
    /// must read what has arrived before (QuorumRound::find_overdue()).
    bool reads_first = false;

    // The list that it is in.
    Asker* previous = nullptr;
    Asker* next = nullptr;

private:
    std::mutex mutex_{};
    std::condition_variable changed_{};
    bool awake_ = false;  // guarded by mutex_
};

// ---- Lists

void SharedRounds::Askers::add(Asker& asker) noexcept {
    asker.previous = last_;
    asker.next = nullptr;
    (last_ ? last_->next : first_) = &asker;
    last_ = &asker;
}

void SharedRounds::Askers::remove(Asker& asker) noexcept {
    (asker.previous ? asker.previous->next : first_) = asker.next;
    (asker.next ? asker.next->previous : last_) = asker.previous;
}

auto SharedRounds::Askers::take() noexcept -> Asker* {
    auto* const taken = first_;
    if (taken) remove(*taken);
    return taken;
}

// ---- The threads that ask

SharedRounds::SharedRounds(const std::vector<NodeConfig>& configs, const NodesOptions& options,
                           Network& network)
    : network_(network),
      node_timeout_(options.node_timeout),
      group_(configs, options, network, NodeGroup::Connections::shared) {
    sender_ = network_.make_task([this](Clock::time_point now) { return send_unsent(now); });
}

SharedRounds::~SharedRounds() = default;

void SharedRounds::ask(std::span<const Request> requests, const RoundLimits& limits,
                       std::span<Tally> tallies) {
    Asker own{requests, limits, tallies};
    const auto time_left = limits.deadline - network_.clock().now();
    bool is_first = false;
    bool leads = false;
    {
        const std::lock_guard guard{mutex_};
        is_first = inbox_.empty();
        inbox_.add(own);
        leads = !std::exchange(is_led_, true);
    }
    if (!leads) {
        const auto after = detail::wakes_leader_after(is_first, time_left);
        if (after && !own.sleep_for(*after)) wake_leader(own);
        own.sleep();
    }
    if (leads || own.leads) lead(own);
    if (own.failure) std::rethrow_exception(own.failure);
    own.round->finish();
}

/// Wakes the leader, unless it has looked into the inbox by now.
void SharedRounds::wake_leader(const Asker& own) {
    const std::lock_guard guard{mutex_};
    if (own.is_new && wakeup_ && !std::exchange(woken_, true)) wakeup_->wake();
}

bool SharedRounds::may_precede(const Command& command) const noexcept {
    if (!has_late_replies_) return false;
    const auto effect = detail::effect_of(command);
    const bool is_independent = effect == detail::KeyEffect::acquires && !command.queue;
    return !is_independent || (released_late_ & detail::PendingReplies::bits_of(command.resources)) != 0;
}

std::size_t SharedRounds::new_rounds() const {
    const std::lock_guard guard{mutex_};
    std::size_t count = 0;
    for (const auto* it = inbox_.first(); it; it = it->next) ++count;
    return count;
}

// ---- The leader

void SharedRounds::lead(Asker& own) noexcept {
    while (!own.over) try {
            make_turn(own);
        } catch (...) {  // no memory
            give_up(own);
        }
    hand_over();
}

void SharedRounds::make_turn(Asker& own) {
    // It must exist before the inbox is taken, because a later round may use it.
    const auto wakeup = wakeup_entry();
    // Nobody has read from the connections since the last round. A server may have closed one.
    if (active_.empty() && network_.clock().now() - last_read_ >= 1ms) read_all();
    begin_new_rounds();
    const auto until = write();
    wake_ended(&own);
    if (own.over) return;
    poll(until, wakeup);
    advance_overdue(network_.clock().now());
    (void)advance_woken();
}

void SharedRounds::begin_new_rounds() {
    Asker* chain = nullptr;
    {
        const std::lock_guard guard{mutex_};
        chain = inbox_.first();
        inbox_ = {};
        for (auto* it = chain; it; it = it->next) it->is_new = false;
    }
    while (chain) {
        auto* const next = chain->next;
        begin(*chain);
        chain = next;
    }
}

void SharedRounds::begin(Asker& asker) noexcept {
    active_.add(asker);
    try {
        asker.round.emplace(group_, asker.requests, asker.limits, asker.tallies);
        asker.round->driver().owner = &asker;
    } catch (...) {
        return end(asker, std::current_exception());
    }
    advance(asker);
}

void SharedRounds::advance(Asker& asker) noexcept {
    try {
        auto& driver = asker.round->driver();
        const auto until = driver.advance();
        if (!until) return end(asker, nullptr);
        asker.until = *until;
        asker.reads_first = *until <= driver.now();
    } catch (...) {
        end(asker, std::current_exception());
    }
}

/// Continues with the woken rounds, except for those before whose next step the sockets must be read. Returns
/// true if there were any.
bool SharedRounds::advance_woken() noexcept {
    bool any = false;
    while (const auto* const round = group_.take_woken()) {
        auto& asker = *static_cast<Asker*>(round->owner);
        if (asker.reads_first) continue;
        advance(asker);
        any = true;
    }
    return any;
}

/// Continues with the rounds whose wait is over. Must be called directly after the sockets were read.
/// Otherwise a round could give a node up although its reply has come.
void SharedRounds::advance_overdue(Clock::time_point now) noexcept {
    for (auto* it = active_.first(); it;) {
        auto& asker = *std::exchange(it, it->next);
        if (asker.until > now) continue;
        asker.round->driver().take_ready({});
        advance(asker);
    }
}

/// Writes the collected commands that must be written now. Returns when the leader must continue.
Clock::time_point SharedRounds::write() {
    Clock::time_point until;
    do {
        (void)advance_woken();
        until = group_.write_collected(network_.clock().now());
    } while (advance_woken());
    for (const auto* it = active_.first(); it; it = it->next) until = std::min(until, it->until);
    return until;
}

void SharedRounds::poll(Clock::time_point until, const std::optional<PollEntry>& wakeup) {
    entries_.clear();
    const auto now = network_.clock().now();
    if (wakeup)
        entries_.push_back(*wakeup);
    else  // the leader itself looks into the inbox in time
        until = std::min<Clock::time_point>(until, now + detail::max_collecting);
    group_.append_poll_entries(entries_);
    // wait() considers only some of the entries. The others are read in any case.
    const bool too_many = entries_.size() > Network::max_entries;
    if (too_many) until = std::min<Clock::time_point>(until, now + 10ms);
    network_.wait(entries_, now, until);
    for (auto i = Network::max_entries; i < entries_.size(); ++i) entries_[i].ready = true;
    if (wakeup && std::exchange(entries_.front().ready, false)) reset_wakeup();
    group_.take_ready(entries_);
    last_read_ = network_.clock().now();
}

/// Returns nothing if the system has no descriptor left.
std::optional<PollEntry> SharedRounds::wakeup_entry() {
    if (!has_tried_wakeup_) {
        auto made = network_.make_wakeup();
        has_tried_wakeup_ = true;
        const std::lock_guard guard{mutex_};
        wakeup_ = std::move(made);
    }
    return wakeup_ ? std::optional{wakeup_->poll_entry()} : std::nullopt;
}

void SharedRounds::reset_wakeup() {
    const std::lock_guard guard{mutex_};
    wakeup_->reset();
    woken_ = false;
}

/// Reads from all connections, without waiting.
void SharedRounds::read_all() {
    entries_.clear();
    group_.append_poll_entries(entries_);
    for (auto& entry : entries_) entry.ready = true;
    group_.take_ready(entries_);
    last_read_ = network_.clock().now();
}

void SharedRounds::end(Asker& asker, std::exception_ptr failure) noexcept {
    asker.has_ended = true;
    if (asker.round) group_.forget(asker.round->driver());
    if (failure) asker.round.reset();
    asker.failure = std::move(failure);
    active_.remove(asker);
    ended_.add(asker);
}

/// Wakes the threads whose rounds have ended, except the leader.
void SharedRounds::wake_ended(const Asker* own) noexcept {
    if (ended_.empty()) return;
    const auto late = group_.late_replies();
    has_late_replies_ = late.any;
    released_late_ = late.released;
    while (auto* const asker = ended_.take()) {
        asker->over = true;
        if (asker != own) asker->wake();
    }
}

/// Ends the round of the leader, which has no memory left.
void SharedRounds::give_up(Asker& own) noexcept {
    {
        const std::lock_guard guard{mutex_};
        if (std::exchange(own.is_new, false)) {
            inbox_.remove(own);
            active_.add(own);
        }
    }
    if (!own.has_ended) end(own, std::current_exception());
    wake_ended(&own);
}

void SharedRounds::hand_over() noexcept {
    if (active_.empty()) return leave();
    auto& successor = *active_.last();
    successor.leads = true;
    successor.wake();
}

/// Writes everything. Then names a waiting thread as the leader, or leaves without one.
void SharedRounds::leave() noexcept {
    bool unsent = true;
    try {
        unsent = group_.write_all(network_.clock().now());
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the background task tries again
    }
    if (!resign() || !unsent) return;
    unsent_since_ = network_.clock().now();
    sender_->start();
}

/// Names a thread in the inbox as the successor. Returns true if there is none, and nobody leads any more.
bool SharedRounds::resign() noexcept {
    Asker* successor = nullptr;
    {
        const std::lock_guard guard{mutex_};
        successor = inbox_.last();
        is_led_ = successor != nullptr;
        if (successor) successor->leads = true;
    }
    if (successor) successor->wake();
    return !successor;
}

/// Leads for a moment, if nobody else does, and sends as much of the unsent releases as the sockets accept.
/// Returns when to call the function again. See NodeGroup::send_unsent().
Clock::time_point SharedRounds::send_unsent(Clock::time_point now) {
    {
        const std::lock_guard guard{mutex_};
        if (std::exchange(is_led_, true)) return Clock::never();
    }
    bool unsent = true;
    try {
        read_all();
        unsent = group_.write_all(now);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the next call tries again
    }
    const auto since = unsent_since_.load();
    if (!resign() || !unsent || now >= since + node_timeout_) return Clock::never();
    return now + std::max<Clock::duration>((now - since) / 4, 1ms);
}

}  // namespace redlock
