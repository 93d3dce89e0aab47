// Waiting in a queue (LockOptions::fair): a client that is refused enters it, and a release wakes the next.
//
// Not part of the page, and nothing that exclusion rests on: one node, the home, keeps the queue, as a hint.
// The lock is what it always is, a majority of grants in a round of the waiter's own.
//
//   1. A client that is refused enters the queue of the home, the first node in the order configured that has
//      answered, with its age, and learns what stands in the way and how many are in front.
//   2. It sleeps until it is woken, or it is time to ask again.
//   3. A release deletes the key on every node. Where there is a queue it wakes the first waiter that hears
//      that, and reserves the resource for it for a while, which keeps newcomers from that node.
//   4. The waiter makes an attempt. The home's command of that round takes it out of the queue, and what was
//      reserved for it makes room.
//
// Whatever becomes of the queue (lost, on two nodes at once, full of waiters that have died), the worst is
// that an acquisition comes late or out of order:
//
//     event                                  | what ends the waiting
//     ---------------------------------------+-----------------------------------------------------
//     a waiter has died                      | nobody hears the message: the next one is woken; while the
//                                            | resource is held, the questions of others remove its ticket
//     a waiter is woken and does not come    | its reservation ends (reservation_ttl)
//     a holder has died                      | its key expires: waiters ask again then
//     a message is lost, the home is emptied | waiters ask again after a poll interval, and keep their age
//     the home does not answer               | the next node is the home
//     the holder wakes nobody: it is of      | the first in the queue asks after every pause of
//     another language, or not fair          | LockOptions::retry, and every poll interval
//     a stray key stands on the home         | the first in the queue makes an attempt every poll interval
//     the home says what is not true         | every waiter makes an attempt after 7 to 14 s
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/back_off.hpp>
#include <redlock/entropy.hpp>
#include <redlock/nodes.hpp>
#include <redlock/result.hpp>
#include <redlock/retry.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock::algorithm {

/// How often a waiter asks that hears nothing; those far behind up to four times more rarely.
inline constexpr Clock::duration poll_interval = std::chrono::milliseconds{250};

/// No waiter asks more often, whatever it is told.
inline constexpr Clock::duration shortest_sleep = std::chrono::milliseconds{10};

/// A waiter that nobody wakes makes an attempt after a random pause of half this length to the whole of it,
/// whatever the home says of its place. The home is one node, and one node must not decide that nobody tries.
/// The pause is this long because 1,000 waiters are to make no more than 200 attempts a second together: a
/// thousand in seven seconds are 143.
inline constexpr Clock::duration longest_without_attempt = std::chrono::seconds{14};

/// A home without a holder may have lost its key. Waiters that find none make an attempt one after the other,
/// in the order of their places, so much apart.
inline constexpr Clock::duration attempt_spacing = std::chrono::milliseconds{6};

/// How long a resource stays reserved for a waiter that was woken: what one that does not come costs the
/// others.
inline std::chrono::milliseconds reservation_ttl(std::chrono::milliseconds node_timeout) {
    return std::max(std::chrono::milliseconds{100}, 2 * node_timeout);
}

/// The nodes that can be a home: those that have voted, or were not asked.
inline NodeSet possible_homes(std::span<const NodeReport> reports) {
    NodeSet result;
    for (std::size_t node = 0; node < reports.size(); ++node)
        result[node] = !detail::failed_to_vote(reports[node]);
    return result;
}

/// The place of one acquire() in the queue for one resource.
class PlaceInQueue {
public:
    /// No I/O. Everything must outlive it. It waits until then at the latest.
    PlaceInQueue(Nodes& nodes, Clock& clock, Entropy& entropy, Resources resource,
                 std::chrono::milliseconds longest_pause, Clock::time_point until)
        : nodes_(nodes),
          clock_(clock),
          entropy_(entropy),
          resource_(resource),
          longest_pause_(longest_pause),
          until_(until),
          begun_(clock.now()),
          last_attempt_at_(begun_),
          holder_seen_(begun_),
          attempt_due_(begun_ + random_pause(longest_without_attempt, entropy)) {
        terms_.reservation_ttl = reservation_ttl(nodes.node_timeout());
        homes_.set();
    }
    /// Leaves the queue. That is written, and not waited for.
    ~PlaceInQueue() {
        try {
            leave();
        } catch (...) {  // NOLINT(bugprone-empty-catch): the queue forgets it
        }
    }
    PlaceInQueue(const PlaceInQueue&) = delete;
    PlaceInQueue& operator=(const PlaceInQueue&) = delete;

    enum class Wake {
        attempt,   ///< an attempt is worth making
        over,      ///< the time is over, or it was stopped; it is still in the queue
        no_queue,  ///< there is no node to wait at
    };

    /// Blocks until an attempt is worth making, until `until` or the end of the time in the queue, or until
    /// stop is requested.
    Wake wait(Clock::time_point until, const std::stop_token& stop) {
        until = withdraws_until_ = std::min(until, until_);
        while (now_is_before(until, stop)) {
            if (!listen({.deadline = until, .stop = stop})) return collect_refusals();
            if (ask_and_sleep(until, stop)) return Wake::attempt;
        }
        return Wake::over;
    }

    /// For the commands of an attempt that leaves the queue. Null for one that only looks around: its place
    /// is kept, and given up when it has got what it waited for.
    const QueueTerms* terms() const noexcept { return leaves_ && !ticket_.empty() ? &terms_ : nullptr; }

    /// What has come of an attempt, which took so long. Where it was to leave the queue, and the home cannot
    /// know that, nobody is to believe that we would hear a message.
    void attempted(const Result& result, Clock::duration took) {
        if (result.nodes().empty()) return;
        const bool woken = std::exchange(leaves_, false);
        if (woken && !ticket_.empty()) {
            const auto& home = result.nodes()[waiter_->home()];
            const bool told = home.vote != Vote::unknown || (home.sent && home.cause == Errc::not_awaited);
            if (told)
                entered_ = false;
            else
                leave_home();
        }
        last_attempt_at_ = clock_.now();
        attempt_due_ = last_attempt_at_ + random_pause(longest_without_attempt, entropy_);
        if (result.error() != Errc::held_by_other) return;
        nodes_.contended().set(resource_.front(), true);
        homes_ = possible_homes(result.nodes());
        if (woken && ++failures_ > 1) back_off(took);
    }

    /// As it was told last; nothing if it never waited.
    const std::optional<QueuePlace>& last() const noexcept { return place_; }

    /// Of a waiter that found no node to wait at, and has found none since.
    const std::vector<NodeReport>& refusals() const noexcept { return refusals_; }

    Clock::time_point until() const noexcept { return until_; }

private:
    bool listen(const RoundLimits& limits) {
        if (!waiter_) waiter_ = nodes_.waiter();
        if (!waiter_) return false;
        if (!ticket_.empty() && homes_[waiter_->home()]) return true;
        leave();
        ticket_.clear();
        if (!waiter_->listen(homes_, limits)) return false;
        ticket_ = waiter_->new_ticket();
        refusals_.clear();
        terms_.ticket = ticket_;
        terms_.home = waiter_->home();
        listens_since_ = clock_.now();
        return true;
    }

    /// Asks the home node once. If the resource is held, blocks until this waiter is woken or until it is
    /// time to ask again. Returns true if an attempt is worth making.
    bool ask_and_sleep(Clock::time_point until, const std::stop_token& stop) {
        const auto now = clock_.now();
        const auto answer = enter({.deadline = until, .stop = stop}, now);
        if (answer.vote == Vote::unknown) {
            if (now_is_before(until, stop)) leave_home(answer.cause, answer.detail);
            return false;
        }
        former_[waiter_->home()].clear();
        if (answer.vote == Vote::refused) {
            place_ = answer.place;
            if (place_->held == QueuePlace::Held::by_holder) {
                holder_seen_ = now;
                tried_without_holder_ = false;
            }
            if (attempt_is_due(now)) return true;
            if (!sleep(std::min(until, next_question(now)), stop)) return false;
        }
        woken_by_another_ = answer.vote == Vote::refused || now < may_take_from_;
        if (woken_by_another_ && pause_if_woken_again(until, stop)) return false;
        leaves_ = true;
        return true;
    }

    NodeReport enter(const RoundLimits& limits, Clock::time_point now) {
        auto terms = terms_;
        terms.waited = std::chrono::duration_cast<std::chrono::microseconds>(now - begun_);
        terms.may_take = now >= may_take_from_;
        terms.former = former_[waiter_->home()];
        entered_ = true;
        return nodes_.ask({.command = {.verb = Verb::enter_queue,
                                       .resources = resource_,
                                       .owner = ticket_,
                                       .queue = &terms},
                           .to = NodeSet{}.set(waiter_->home())},
                          limits)[waiter_->home()];
    }

    bool now_is_before(Clock::time_point until, const std::stop_token& stop) {
        return !stop.stop_requested() && clock_.now() < until;
    }

    /// Returns whether the message with our ticket came. A message with the ticket of an earlier acquire()
    /// means that the resource may be reserved for that ticket: it is withdrawn, so that the next waiter is
    /// woken. Only the first such message is answered, because a hostile home may send them without end.
    bool sleep(Clock::time_point until, const std::stop_token& stop) {
        for (bool withdrawn = false; now_is_before(until, stop);) {
            const auto [connected, ticket] = waiter_->sleep(until, stop);
            if (ticket == terms_.ticket) return true;
            if (!connected) {
                lose_connection();
                return false;
            }
            if (!ticket.empty() && !std::exchange(withdrawn, true)) withdraw(ticket);
        }
        return false;
    }

    /// A waiter that another client has woken makes an attempt at once, also during its pause. It does so
    /// once in a pause: otherwise a home that wakes it again and again would cause attempts without end at
    /// the other nodes. The second time it waits until the pause is over. Returns whether it has waited: then
    /// the home has to say whether the resource is still reserved for it.
    bool pause_if_woken_again(Clock::time_point until, const std::stop_token& stop) {
        const auto from = std::min(may_come_from_, attempt_due_);
        if (clock_.now() >= from) return false;
        clock_.sleep_until(std::min(until, from), stop);
        return true;
    }

    /// Returns whether to make an attempt although nobody has woken this waiter:
    /// - The first in the queue does so after each poll interval, because the key on the home may be a stray
    /// one that
    ///   alone stands in the way. It does not while the resource is reserved for another waiter, because the
    ///   attempt would take from that waiter what is reserved for it.
    /// - Any waiter does so once when the home has had no holder for two poll intervals and its turn has
    /// come, because
    ///   the waiters in front may be unable to come.
    /// - Any waiter does so when its last attempt is long ago.
    bool attempt_is_due(Clock::time_point now) {
        const bool reserved = place_->held == QueuePlace::Held::by_waiter;
        const bool first = place_->in_front == 0 && !reserved && now - last_attempt_at_ >= poll_interval;
        const auto turn = attempt_spacing * static_cast<int>(std::min<std::size_t>(place_->in_front, 1000));
        const bool nobody_comes = !tried_without_holder_ && now - holder_seen_ >= 2 * poll_interval + turn;
        tried_without_holder_ = tried_without_holder_ || nobody_comes;
        return first || nobody_comes || now >= attempt_due_;
    }

    Clock::time_point next_question(Clock::time_point now) {
        using namespace std::chrono_literals;
        const bool first = place_->in_front == 0;
        const auto rarer = static_cast<int>(std::min<std::size_t>(place_->in_front, 48));
        auto next = now + (first ? std::min(random_pause(longest_pause_, entropy_), poll_interval)
                                 : poll_interval + poll_interval * rarer / 16);
        // Not all of them at once: it is mostly a release that ends the waiting.
        constexpr std::size_t nearly_first = 4;
        if (place_->held_for >= 0ms && place_->in_front < nearly_first)
            next = std::min(next, now + place_->held_for + 1ms);
        // More waiters may have died than one question removes from the queue, but not without end.
        constexpr int most_in_a_row = 16;
        free_in_a_row_ = place_->held == QueuePlace::Held::by_nobody ? free_in_a_row_ + 1 : 0;
        if (free_in_a_row_ > 0 && free_in_a_row_ <= most_in_a_row) next = may_take_from_;
        return std::max(next, now + shortest_sleep);
    }

    /// A waiter that was woken and is refused may have been too slow for a waiter of another home. Two such
    /// waiters would collide again and again, so each makes a random pause that doubles with each failure. It
    /// grows to the pause of LockOptions::retry, within 10 ms and 10 s.
    void back_off(Clock::duration took) {
        using namespace std::chrono_literals;
        const detail::BackOff pauses{
            .shortest = took, .longest = std::clamp<Clock::duration>(longest_pause_, shortest_sleep, 10s)};
        may_take_from_ = last_attempt_at_ + pauses.pause(failures_, entropy_);
        if (woken_by_another_) may_come_from_ = may_take_from_;
    }

    /// A connection may have been cut although the home is well. The waiter then listens there again and
    /// keeps its place. If this happens a second time within a poll interval, it goes to another home.
    void lose_connection() {
        const auto home = waiter_->home();
        const bool again = clock_.now() - listens_since_ >= poll_interval;
        leave_home();
        homes_[home] = again;
    }

    /// To another home, which gives it another ticket. `why`: what the home has said, if anything.
    void leave_home(std::error_code why = {}, std::string_view words = {}) {
        homes_.reset(waiter_->home());
        waiter_->disconnect(is_transient(why) ? std::error_code{} : why, words);
        if (std::exchange(entered_, false)) former_[waiter_->home()] = ticket_;
        ticket_.clear();
    }

    Wake collect_refusals() {
        refusals_.clear();
        if (!waiter_) return Wake::no_queue;
        auto tally = nodes_.blank_tally();
        waiter_->report_refusals(tally);
        for (const auto& node : tally.reports())
            if (node.cause != Errc::not_asked) refusals_.push_back(node);
        return Wake::no_queue;
    }

    void leave() {
        if (std::exchange(entered_, false)) withdraw(ticket_);
    }

    /// Whoever is next is woken if the resource was reserved for `ticket`. No connection is waited for once
    /// the time is over.
    void withdraw(std::string_view ticket) {
        const QueueTerms terms{.ticket = ticket, .reservation_ttl = terms_.reservation_ttl, .repeated = true};
        (void)nodes_.ask({.command = {.verb = Verb::compare_and_delete,
                                      .resources = resource_,
                                      .owner = ticket,
                                      .queue = &terms},
                          .to = NodeSet{}.set(waiter_->home())},
                         {.deadline = withdraws_until_, .awaits_answers = false});
    }

    Nodes& nodes_;
    Clock& clock_;
    Entropy& entropy_;
    const Resources resource_;
    const std::chrono::milliseconds longest_pause_;
    const Clock::time_point until_;
    const Clock::time_point begun_;
    Clock::time_point last_attempt_at_;  // when an attempt was made last
    Clock::time_point holder_seen_;      // when the home was last held by a holder
    Clock::time_point attempt_due_;      // when an attempt is made whatever the home says
    Clock::time_point withdraws_until_ = Clock::never();
    std::unique_ptr<Waiter> waiter_{};
    NodeSet homes_{};                              // where it may wait
    std::string ticket_{};                         // empty while it listens nowhere
    QueueTerms terms_{};                           // with this ticket
    std::array<std::string, max_nodes> former_{};  // tickets that may still be in the queue of each node
    Clock::time_point listens_since_{};
    bool tried_without_holder_ = false;  // since the home had a holder
    bool entered_ = false;               // it may be in the queue
    bool leaves_ = false;                // the queue, with the next attempt, because it was woken for it
    bool woken_by_another_ = false;      // and has not reserved the resource for itself
    int failures_ = 0;                   // of such attempts
    int free_in_a_row_ = 0;              // answers that the resource is free and that it is not ours
    Clock::time_point may_take_from_{};  // when it may reserve the resource for itself
    Clock::time_point may_come_from_{};  // when another client may wake it
    std::optional<QueuePlace> place_{};
    std::vector<NodeReport> refusals_{};
};

/// Remembers, from the answers to a fair release, whether somebody waits: a client that releases and wants to
/// have it again is to enter the queue then. Where a node has not answered it may be the home: what was known
/// stands.
inline void record_contention(Nodes& nodes, Resources resources, const Tally& tally) {
    const bool woken =
        std::ranges::any_of(tally.reports(), [](const NodeReport& it) { return it.count > 0; });
    const bool unknown = std::ranges::any_of(
        tally.reports(), [](const NodeReport& it) { return it.sent && it.vote == Vote::unknown; });
    if (woken || !unknown)
        for (const auto& resource : resources) nodes.contended().set(resource, woken);
}

}  // namespace redlock::algorithm
