#include "lane.hpp"

#include <redlock/detail/memory.hpp>

#include "../round/lane_choice.hpp"
#include "../round/write_choice.hpp"
#include "../wire/verbs.hpp"
#include "request_copies.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <system_error>
#include <utility>

namespace redlock {

using namespace std::chrono_literals;

/// How the sleep of a thread has ended.
enum class Lane::Waited : std::uint8_t {
    not_yet,
    until_it_leads,
    until_it_is_done,
    left,       ///< The thread has left its round to the leading thread, which makes the rest of it.
    took_back,  ///< The thread has taken its round back.
};

/// A round and the thread that asks for it. The leading thread is a second user of the object while it
/// notifies the thread. So it can do that without a mutex, even if the thread has returned meanwhile.
class Lane::Asker final : public detail::Linked<Asker>,
                          public detail::Linked<Asker, Ready>,
                          public RoundDriver::Maker {
public:
    explicit Asker(Lane& lane) noexcept : lane_(lane) {}

    void wake() noexcept override { lane_.ready_.add(*this); }

    /// Makes copies of the arguments, so that another thread can make the round.
    void copy() {
        requests = copies_.copy(requests);
        copied_tallies_.assign(tallies.begin(), tallies.end());
        tallies = copied_tallies_;
        has_copies = true;
    }
    /// Makes the object a new one.
    void clear() noexcept {
        round.reset();
        limits = {};
        failure = nullptr;
        users = 1;
        is_new = true;
        has_copies = has_ended = reads_first = false;
        waited_ = Waited::not_yet;
    }

    /// Returns true if the command must be sent even if the thread leaves before the round has begun.
    bool must_be_sent() const noexcept {
        return !limits.awaits_answers ||
               detail::effect_of(requests.front().command) == detail::KeyEffect::releases;
    }

    /// Sleeps until the thread was woken, but at most for this time.
    Waited sleep_for(Clock::duration longest) {
        std::unique_lock lock{mutex_};
        (void)changed_.wait_for(lock, longest, [this] { return waited_ != Waited::not_yet; });
        return waited_;
    }
    /// Sets the reason for which the sleep ends, unless it has ended. Returns the reason.
    Waited end_sleep(Waited reason) noexcept {
        const std::lock_guard guard{mutex_};
        if (waited_ == Waited::not_yet) waited_ = reason;
        return waited_;
    }
    /// Must be called after end_sleep() if the thread has not left, without a mutex.
    void notify() noexcept { changed_.notify_one(); }
    bool has_left() noexcept {
        const std::lock_guard guard{mutex_};
        return waited_ == Waited::left;
    }

    // The arguments of ask(), or copies.
    std::span<const Request> requests{};
    RoundLimits limits{};
    std::span<Tally> tallies{};
    bool has_copies = false;

    std::atomic<int> users = 1;
    bool is_new = true;  ///< in the inbox, or not there yet; guarded by the mutex of Lane

    // Written by the leading thread, before it wakes the thread.
    bool has_ended = false;  ///< the leading thread has nothing to do for the round any more
    std::exception_ptr failure{};
    std::optional<RoundDriver> round{};
    Clock::time_point until{};  ///< when the leading thread must continue with the round at the latest
    /// The leading thread must read what has arrived before the next advance(), see
    /// QuorumRound::find_overdue().
    bool reads_first = false;

private:
    Lane& lane_;
    RequestCopies copies_{};
    std::vector<Tally> copied_tallies_{};
    std::mutex mutex_{};
    std::condition_variable changed_{};
    Waited waited_ = Waited::not_yet;  // guarded by mutex_
};

// ---- The threads that ask

Lane::Lane(const std::vector<NodeConfig>& configs, const NodesOptions& options, Network& network, Kind kind)
    : network_(network),
      kind_(kind),
      group_(configs, options, network,
             kind == Kind::shared ? NodeGroup::Writes::collected : NodeGroup::Writes::at_once) {
    free_.reserve(most_free);
    sender_ = network_.make_task([this](Clock::time_point now) { return send_unsent(now); });
}

Lane::~Lane() = default;

bool Lane::ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies,
               Patience patience) {
    auto own = take_asker();
    own->requests = requests;
    own->limits = limits;
    own->tallies = tallies;
    bool is_first = false;
    auto waited = post(*own, is_first);
    if (!waited) return false;
    Clock::time_point start;
    if (waited == Waited::not_yet) {
        start = network_.clock().now();
        waited = sleep(*own, is_first, start, patience);
    }
    if (waited == Waited::until_it_leads) lead(*own);
    if (waited == Waited::left) (void)own.release();  // it belongs to the leading thread now
    if (waited == Waited::left || waited == Waited::took_back) {
        const auto now = network_.clock().now();
        report_left(requests, tallies, waited == Waited::left,
                    patience == Patience::none ? Errc::not_awaited
                    : now < limits.deadline    ? Errc::timed_out
                                               : Errc::deadline);
        group_.notify(requests, tallies, now - start);
        return true;
    }
    if (own->failure) std::rethrow_exception(own->failure);
    own->round->finish();
    if (own->has_copies) std::ranges::move(own->tallies, tallies.begin());
    return true;
}

auto Lane::take_asker() -> OwnAsker {
    {
        const std::lock_guard guard{mutex_};
        if (!free_.empty()) {
            OwnAsker taken{free_.back().release(), {this}};
            free_.pop_back();
            return taken;
        }
    }
    return OwnAsker{new Asker{*this}, {this}};
}

/// Is called once by each user of the object.
void Lane::recycle(Asker& asker) noexcept {
    if (--asker.users > 0) return;
    std::unique_ptr<Asker> unused{&asker};  // declared first, so that it is destroyed without the mutex
    asker.clear();
    const std::lock_guard guard{mutex_};
    if (free_.size() < most_free) free_.push_back(std::move(unused));
}

/// Wakes a thread for this reason. Returns false if it has left.
bool Lane::wake(Asker& asker, Waited reason) noexcept {
    ++asker.users;
    const OwnAsker user{&asker, {this}};
    if (asker.end_sleep(reason) != reason) return false;
    asker.notify();
    return true;
}

/// Puts a round into the inbox (rule 1), with copies of the arguments if another thread leads. The copies are
/// made without the mutex, and then the function tries again. Returns until_it_leads or not_yet, or nothing
/// if the lane is private.
auto Lane::post(Asker& own, bool& is_first) -> std::optional<Waited> {
    for (;; own.copy()) {
        const std::lock_guard guard{mutex_};
        if (is_private_) return std::nullopt;
        if (is_led_ && !own.has_copies) continue;
        is_first = inbox_.empty();
        inbox_.add(own);
        return std::exchange(is_led_, true) ? Waited::not_yet : Waited::until_it_leads;
    }
}

/// Sleeps while another thread makes the round. If this takes too long, leaves the round.
auto Lane::sleep(Asker& own, bool is_first, Clock::time_point start, Patience patience) -> Waited {
    if (patience == Patience::none) return leave(own, false);
    const auto longest = group_.longest_round(detail::effect_of(own.requests.front().command), own.limits);
    const auto grace = patience == Patience::with_grace ? detail::time_to_end(group_.node_timeout()) : 0ns;
    const auto time_left = own.limits.deadline - start;
    auto waited = Waited::not_yet;
    if (const auto after = detail::wakes_leading_thread_after(is_first, time_left)) {
        waited = own.sleep_for(*after);
        if (waited == Waited::not_yet) wake_leading_thread(own);
    }
    const auto end = start + std::min(time_left, longest) + grace;
    if (waited == Waited::not_yet) waited = own.sleep_for(end - network_.clock().now());
    // The process may have been suspended. Then the leading thread needs the grace to read what has come
    // meanwhile.
    const bool overslept = network_.clock().now() - end >= grace;
    if (waited == Waited::not_yet && overslept) waited = own.sleep_for(grace);
    return waited == Waited::not_yet ? leave(own, true) : waited;
}

/// Wakes the leading thread, unless it has looked into the inbox by now.
void Lane::wake_leading_thread(const Asker& own) {
    Wakeup* wakeup = nullptr;
    {
        const std::lock_guard guard{mutex_};
        if (own.is_new) wakeup = wakeup_.get();
    }
    if (wakeup) wakeup->wake();
}

/// Leaves the round (rule 6), unless the leading thread has woken the thread by now. `leading_thread_is_late`
/// is true if the thread has waited for the leading thread in vain.
auto Lane::leave(Asker& own, bool leading_thread_is_late) -> Waited {
    Wakeup* wakeup = nullptr;
    {
        const std::lock_guard guard{mutex_};
        const bool takes_back = own.is_new && !own.must_be_sent();
        const auto reason = takes_back ? Waited::took_back : Waited::left;
        if (const auto waited = own.end_sleep(reason); waited != reason) return waited;
        if (leading_thread_is_late) stalled_ = true;
        if (takes_back) {
            inbox_.remove(own);
            return reason;
        }
        unanswered_.leave(own.requests);
        wakeup = wakeup_.get();
    }
    if (wakeup) wakeup->wake();
    return Waited::left;
}

/// Reports what is known of a round that was left.
void Lane::report_left(std::span<const Request> requests, std::span<Tally> tallies, bool sent,
                       std::error_code cause) const {
    for (std::size_t i = 0; i < requests.size(); ++i)
        for (std::size_t node = 0; node < tallies[i].size(); ++node) {
            if (!requests[i].to[node]) continue;
            sent ? tallies[i].mark_unknown(node, cause) : tallies[i].mark_not_sent(node, cause);
            if (cause != Errc::not_awaited) tallies[i][node].detail = leading_thread_gets_no_processor;
        }
}

std::size_t Lane::new_rounds() const {
    const std::lock_guard guard{mutex_};
    std::size_t count = 0;
    for (const auto* it = inbox_.first(); it; it = inbox_.after(*it)) ++count;
    return count;
}

// ---- The leading thread

void Lane::lead(Asker& own) noexcept {
    try {
        while (!make_pass(own)) continue;
    } catch (...) {  // no memory
        end_without_memory(own);
    }
    stop_leading();
}

/// Has another thread lead, or the background task if something is left to do.
void Lane::stop_leading() noexcept {
    if (hand_over() == Rest::nothing) return;
    sender_since_ = network_.clock().now();
    sender_->start();
}

/// Returns true if the round of the leading thread has ended.
bool Lane::make_pass(Asker& own) {
    // A server may have closed a connection since the last round. If somebody has read within the last
    // millisecond, this read is left out.
    if (active_.empty() && network_.clock().now() - last_read_ >= 1ms) read_all();
    // Before the inbox is taken, because the thread of a round that comes after that uses the wakeup.
    if (kind_ == Kind::shared) make_wakeup();
    begin_new_rounds(&own);
    auto until = write();
    if (wake_ended(&own)) return true;
    // Nobody can join the only round of a private lane, and nothing is collected there, so it needs no other
    // pass.
    do {
        if (is_private_ && own.round->try_blocking_receive(until))
            last_read_ = own.round->now();
        else
            poll(until);
        advance_overdue(last_read_);
        (void)advance_ready();
        until = own.until;
    } while (is_private_ && !own.has_ended);
    if (!is_private_) return false;
    (void)write();  // sends releases again if a connection has broken, before wake_ended() looks for them
    return wake_ended(&own);
}

/// Makes the lane private if `own` is the only round, and nobody may join now. Nothing changes this while the
/// round is under way, because only the end of a round leaves commands behind that others must follow.
void Lane::begin_new_rounds(const Asker* own) {
    Askers begun;
    {
        const std::lock_guard guard{mutex_};
        const auto has_others = [own](const Askers& list) {
            return list.last() && (list.first() != own || list.last() != own);
        };
        is_private_ = own && !may_be_joined_locked() && !has_others(active_) && !has_others(inbox_);
        for (auto* it = inbox_.first(); it; it = inbox_.after(*it)) it->is_new = false;
        begun.add_all(inbox_);
    }
    stalled_ = false;  // this pass shows that the leading thread has a processor
    if (unanswered_.any_left()) end_left();
    while (auto* const asker = begun.first()) begin(*asker);
}

void Lane::begin(Asker& asker) noexcept {
    active_.add(asker);
    const bool left = unanswered_.any_left() && asker.has_left();
    if (left && !asker.must_be_sent()) return end_left(asker);
    try {
        asker.round.emplace(group_, asker, asker.requests, asker.limits, asker.tallies);
    } catch (...) {
        return end(asker, std::current_exception());
    }
    advance(asker);
    // The command is sent, or queued on a connection. Nobody waits for the replies.
    if (left && !asker.has_ended) end_left(asker);
}

void Lane::advance(Asker& asker) noexcept {
    try {
        const auto until = asker.round->advance();
        if (!until) return end(asker, nullptr);
        asker.until = *until;
        asker.reads_first = *until <= asker.round->now();
    } catch (...) {
        end(asker, std::current_exception());
    }
}

/// Continues with the rounds that can, but leaves out those that must first read the sockets (reads_first).
/// Their wait is over, so advance_overdue() continues with them. Returns true if it continued with any.
bool Lane::advance_ready() noexcept {
    bool any = false;
    while (auto* const asker = ready_.take()) {
        if (asker->reads_first) continue;
        advance(*asker);
        any = true;
    }
    return any;
}

/// Continues with the rounds whose wait is over. Must be called directly after the sockets were read.
void Lane::advance_overdue(Clock::time_point now) noexcept {
    for (auto* it = active_.first(); it;) {
        auto& asker = *std::exchange(it, active_.after(*it));
        if (asker.until > now) continue;
        asker.round->read_clock();
        advance(asker);
    }
}

/// Writes the collected commands that must be written now. Returns when the leading thread must continue.
Clock::time_point Lane::write() {
    Clock::time_point until;
    do {
        (void)advance_ready();
        const auto now = network_.clock().now();
        if (!detail::has_memory_for([&] { until = group_.write_collected(now); }))
            until = now + 10ms;  // tries again to send a release again
    } while (advance_ready());
    for (const auto* it = active_.first(); it; it = active_.after(*it)) until = std::min(until, it->until);
    return until;
}

void Lane::poll(Clock::time_point until) {
    entries_.clear();
    const auto now = network_.clock().now();
    if (wakeup_)  // a lane with a wakeup is never private
        entries_.push_back(wakeup_->poll_entry());
    else if (!is_private_)  // the leading thread itself looks into the inbox in time
        until = std::min<Clock::time_point>(until, now + detail::max_collecting);
    group_.append_poll_entries(entries_);
    network_.wait(entries_, now, until);
    // The wakeup is reset before the inbox is taken.
    if (wakeup_ && std::exchange(entries_.front().ready, false)) wakeup_->reset();
    take_ready();
}

/// Reads from the connections whose entries are ready. Without memory for a release that is to be sent again,
/// a later pass tries again.
void Lane::take_ready() {
    last_read_ = network_.clock().now();
    (void)detail::has_memory_for([this] { group_.take_ready(entries_, last_read_); });
}

/// Does nothing if the system has no descriptor left.
void Lane::make_wakeup() {
    if (std::exchange(has_tried_wakeup_, true)) return;
    auto made = network_.make_wakeup();
    const std::lock_guard guard{mutex_};
    wakeup_ = std::move(made);
}

/// Reads from all connections, without waiting.
void Lane::read_all() {
    entries_.clear();
    group_.append_poll_entries(entries_);
    for (auto& entry : entries_) entry.ready = true;
    take_ready();
}

void Lane::end(Asker& asker, std::exception_ptr failure) noexcept {
    asker.has_ended = true;
    if (failure) asker.round.reset();
    asker.failure = std::move(failure);
    ready_.remove(asker);
    ended_.add(asker);
}

/// Wakes the threads whose rounds have ended, except the leading thread. Returns true if the round of the
/// leading thread is one of them.
bool Lane::wake_ended(const Asker* own) noexcept {
    if (ended_.empty()) return false;
    find_unanswered();
    bool own_has_ended = false;
    while (auto* const asker = ended_.take()) {
        if (asker == own)
            own_has_ended = true;
        else if (!wake(*asker, Waited::until_it_is_done)) {
            {
                const std::lock_guard guard{mutex_};  // its thread may still be in leave()
                unanswered_.end_left();
            }
            recycle(*asker);
        }
    }
    return own_has_ended;
}

void Lane::find_unanswered() noexcept {
    unanswered_.update([this](detail::LateReplies& late) { group_.add_late_replies(late); });
    if (!unanswered_.any()) return;
    // A private lane refuses each round. Lanes::make_round() would choose it again and again for a command
    // that must follow one of these.
    const std::lock_guard guard{mutex_};
    if (may_be_joined_locked()) is_private_ = false;
}

/// Ends the rounds whose threads have left.
void Lane::end_left() noexcept {
    for (auto* it = active_.first(); it;) {
        auto& asker = *std::exchange(it, active_.after(*it));
        if (asker.has_left()) end_left(asker);
    }
}

/// Leaves the connections at once, so that nothing more is sent. A command that is collected, or queued as a
/// release, stays on its connection.
void Lane::end_left(Asker& asker) noexcept {
    asker.round.reset();
    end(asker, nullptr);
}

/// Ends the round of the leading thread, which has no memory left.
void Lane::end_without_memory(Asker& own) noexcept {
    {
        const std::lock_guard guard{mutex_};
        if (std::exchange(own.is_new, false)) active_.add(own);
    }
    if (!own.has_ended) end(own, std::current_exception());
    (void)wake_ended(&own);
}

/// Names a waiting thread as the leading thread (rules 4 and 5). Returns what is left to do if nobody leads
/// any more.
auto Lane::hand_over() noexcept -> Rest {
    for (;; begin_new_rounds(nullptr)) {
        for (auto* it = active_.last(); it; it = active_.before(*it))
            if (wake(*it, Waited::until_it_leads)) return Rest::nothing;
        end_left();
        (void)wake_ended(nullptr);
        auto rest = Rest::unsent;  // also without memory, so that the background task tries again
        (void)detail::has_memory_for([&] { rest = group_.write_all(network_.clock().now()); });
        unconnected_ = group_.count_unconnected();
        if (unconnected_ > 0) unconnected_until_ = network_.clock().now() + std::chrono::seconds{10};
        OwnAsker successor{nullptr, {this}};
        {
            const std::lock_guard guard{mutex_};
            is_private_ = false;
            successor.reset(name_successor_locked());
            if (!successor && !inbox_.empty()) continue;  // the threads of all its rounds have left
            is_led_ = successor != nullptr;
            stalled_ = false;  // while nobody leads, no pass follows
        }
        if (!successor) return rest;
        successor->notify();
        return Rest::nothing;
    }
}

/// Names a thread in the inbox as the leading thread, and returns its round, or null if all of them have
/// left.
auto Lane::name_successor_locked() noexcept -> Asker* {
    for (auto* it = inbox_.last(); it; it = inbox_.before(*it)) {
        if (it->end_sleep(Waited::until_it_leads) != Waited::until_it_leads) continue;
        ++it->users;  // its thread has not returned: in order to lead, it needs this mutex
        return it;
    }
    return nullptr;
}

void Lane::read_late() noexcept {
    {
        const std::lock_guard guard{mutex_};
        if (is_led_ || network_.clock().now() - last_read_ < 1ms) return;
        is_led_ = true;
    }
    (void)detail::has_memory_for([this] { read_all(); });  // otherwise the next round reads
    find_unanswered();
    stop_leading();
}

/// Leads for a moment, if nobody else does, and sends as much of the unsent releases as the sockets accept.
/// Returns when to call the function again:
///
///     another thread leads, nothing is left, or   | never; the next round or the destructor does the rest
///     a node_timeout has passed without success   |
///     only a reply is missing                     | after a node_timeout, when check_silence() can send the
///                                                 | release again
///     bytes are unsent                            | soon, after a quarter of the time that has passed
Clock::time_point Lane::send_unsent(Clock::time_point now) {
    {
        const std::lock_guard guard{mutex_};
        if (std::exchange(is_led_, true)) return Clock::never();
    }
    (void)detail::has_memory_for([&] {  // otherwise the next call tries again
        read_all();
        if (group_.check_silence(now)) sender_since_ = now;
    });
    find_unanswered();
    const auto since = sender_since_.load();
    const auto rest = hand_over();
    const auto end = since + group_.node_timeout();
    if (rest == Rest::nothing || now > end) return Clock::never();
    if (rest == Rest::unconfirmed) return end + 1ms;
    return now >= end ? Clock::never() : now + std::max<Clock::duration>((now - since) / 4, 1ms);
}

}  // namespace redlock
