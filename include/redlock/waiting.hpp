// Waiting in a queue (LockOptions::fair). A client that is refused enters the queue, and a release wakes the
// waiter that came first.
//
// This is an extension to the Redlock specification. Mutual exclusion does not depend on it: a waiter holds
// the lock only if its own round gets a majority of grants. One node, the home node, keeps the queue, and the
// queue only decides which client tries next.
//
//   1. A refused client enters the queue of its home node, which is the first node, in the configured order,
//      that answers. It tells the node how long it has waited already. The node reports who has the resource
//      there, and how many waiters are in front.
//   2. The waiter sleeps until it is woken, or until it is time to ask the home node again.
//   3. A release deletes the key on every node. If a node has a queue, the same command takes the first
//      waiter out of it and sends this waiter a message. If the waiter is subscribed, the node also reserves
//      the resource for it, so that newcomers are refused there for a while.
//   4. The woken waiter makes an attempt. In that round, the command for the home node also takes the waiter
//      out of the queue and replaces its reservation by the lock.
//
// The queue may be lost, exist on two nodes at once, or be full of waiters that have died. The worst effect
// is that a client acquires the lock late or out of order:
//
//     event                                  | what ends the wait
//     ---------------------------------------+---------------------------------------------------------
//     a waiter has died                      | a release finds no subscriber and wakes the next waiter.
//                                            | While the resource is held, the questions of other
//                                            | waiters remove its *ticket*, its entry in the queue.
//     a woken waiter makes no attempt        | its reservation ends after reservation_ttl()
//     a holder has died                      | its key expires, and the waiters ask at that time
//     a message is lost, or the home node    | the waiters ask again after a poll interval, and report
//     has lost its data                      | how long they have waited, so they keep their order
//     the home node does not answer          | the waiter goes to the next node; it comes back when the
//                                            | earlier node has answered an attempt again
//     the release wakes no waiter, because   | the first waiter asks after every pause of
//     the holder uses another library, or    | LockOptions::retry, and at least every poll interval
//     a lock without `fair`                  |
//     the home node has a key that no client | the first waiter makes an attempt every poll interval
//     of the lock has set (a stray key)      |
//     the home node reports something false  | every waiter makes an attempt after 7 to 14 s
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
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock::algorithm {

/// How long a waiter that has received no message waits before it asks again. Waiters far behind in the queue
/// wait up to four times as long.
inline constexpr Clock::duration poll_interval = std::chrono::milliseconds{250};

/// The shortest time between two questions of one waiter, whatever the home node reports.
inline constexpr Clock::duration shortest_sleep = std::chrono::milliseconds{10};

/// The longest time between two attempts of a waiter that is not woken. The pause is random, between half of
/// this time and the whole. It does not depend on what the home node reports, because otherwise this one node
/// could keep all waiters from the lock. The limit is 14 s because 1,000 waiters together must not make more
/// than 200 attempts per second: 1,000 attempts within the 7 s from 7 to 14 are 143 per second.
inline constexpr Clock::duration longest_without_attempt = std::chrono::seconds{14};

/// A home node that reports no holder may have lost the holder's key. Then the waiters make attempts one
/// after the other, in the order of their places. This is the time between two of these attempts.
inline constexpr Clock::duration attempt_spacing = std::chrono::milliseconds{6};

/// How long a waiter stays at a node before it tries to listen at an earlier node again. An earlier node may
/// answer attempts, but accept no subscription. Without this limit the waiter would connect to it all the
/// time.
inline constexpr Clock::duration shortest_stay = std::chrono::seconds{5};

/// Returns how long a resource stays reserved for a woken waiter. This is the delay that a woken waiter
/// causes if it makes no attempt.
inline std::chrono::milliseconds reservation_ttl(std::chrono::milliseconds node_timeout) {
    return std::max(std::chrono::milliseconds{100}, 2 * node_timeout);
}

/// Returns the nodes that can be a home node: every node that has voted or was not asked. A node that was not
/// asked because it is in back-off can be one, too. The waiter then begins a probe if one is due, because the
/// attempts may ask this node no more while the other nodes refuse.
inline NodeSet possible_homes(std::span<const NodeReport> reports) {
    NodeSet result;
    for (std::size_t node = 0; node < reports.size(); ++node)
        result[node] = reports[node].left_alone || !detail::failed_to_vote(reports[node]);
    return result;
}

/// The place of one acquire() in the queue for one resource. It decides when this client asks the home node,
/// and when it makes an attempt.
///
///     state     | meaning                                      | transitions
///     ----------+----------------------------------------------+-----------------------------------------
///     away      | listens at no node, and has no ticket        | has subscribed at a home node, and got a
///               |                                              | new ticket → listening
///     listening | is subscribed at the home node; its ticket   | asks the home node → queued
///               | is not in the queue                          | goes to another node → away
///     queued    | its ticket may be in the queue of the home   | receives a message → woken
///               | node                                         | the home node answers that the resource
///               |                                              | is reserved for it → reserved, or woken
///               |                                              | during a pause (see back_off())
///               |                                              | the node has failed, the connection is
///               |                                              | lost, goes to another node → away
///     woken     | another client has woken it; its next        | the attempt has reached the home node
///               | attempt takes the ticket out of the queue    | → listening
///               |                                              | the attempt may not have reached it
///               |                                              | → away
///     reserved  | as woken, but its own question has reserved  | as woken
///               | the free resource; only back_off() makes a   |
///               | difference between the two                   |
///
/// An attempt that the waiter makes although it was not woken changes no state: the waiter keeps its place
/// until it has the lock. When the object is destroyed, the ticket leaves the queue from every state in which
/// it may be there.
class PlaceInQueue {
public:
    /// Does no I/O. All arguments must outlive the object. No wait() lasts longer than until `until`.
    PlaceInQueue(Nodes& nodes, Clock& clock, Entropy& entropy, Resources resource,
                 std::chrono::milliseconds longest_pause, Clock::time_point until)
        : nodes_(nodes),
          clock_(clock),
          entropy_(entropy),
          resource_(resource),
          longest_pause_(longest_pause),
          until_(until),
          begun_(clock.now()),
          attempts_{.last = begun_, .due = begun_ + random_pause(longest_without_attempt, entropy)},
          reported_{.holder_seen = begun_} {
        terms_.reservation_ttl = reservation_ttl(nodes.node_timeout());
        homes_.set();
    }
    /// Leaves the queue. Sends the command, but does not wait for the reply.
    ~PlaceInQueue() {
        try {
            if (waiter_) leave_queue(waiter_->home());
        } catch (...) {  // NOLINT(bugprone-empty-catch): the queue removes the ticket by itself
        }
    }
    PlaceInQueue(const PlaceInQueue&) = delete;
    PlaceInQueue& operator=(const PlaceInQueue&) = delete;

    enum class Wake {
        attempt,   ///< An attempt is worth making.
        over,      ///< The time is over or a stop was requested. The ticket may still be in the queue.
        no_queue,  ///< No node keeps a queue for this client.
    };

    /// Blocks until an attempt is worth making, until `until` or the end of the time in the queue, or until a
    /// stop is requested.
    Wake wait(Clock::time_point until, const std::stop_token& stop) {
        until = withdraws_until_ = std::min(until, until_);
        while (now_is_before(until, stop)) {
            if (!listen({.deadline = until, .stop = stop})) return wait_without_home(until, stop);
            if (ask_and_sleep(until, stop)) return Wake::attempt;
        }
        return Wake::over;
    }

    /// Returns the queue terms for the commands of the next attempt, which takes this waiter out of the
    /// queue. Returns null if the waiter was not woken. It then keeps its place during the attempt, and
    /// leaves the queue when it has the lock.
    const QueueTerms* terms() const noexcept { return leaves_queue() ? &terms_ : nullptr; }

    /// Records the outcome of an attempt, and how long the attempt took.
    void attempted(std::error_code error, const Tally& votes, Clock::duration took) {
        const bool woken = leaves_queue();
        const bool woken_by_another = state_ == State::woken;
        if (woken) left_queue(votes[waiter_->home()]);
        attempts_.last = clock_.now();
        attempts_.due = attempts_.last + random_pause(longest_without_attempt, entropy_);
        if (error != Errc::held_by_other) return;
        nodes_.contended().set(resource_.front(), true);
        homes_ = possible_homes(votes.reports());
        if (woken && ++attempts_.failed_when_woken > 1) back_off(took, woken_by_another);
    }

    /// Returns the place that the home node reported last; nothing if it has reported none.
    const std::optional<QueuePlace>& last() const noexcept { return reported_.place; }

    /// Returns why nodes keep no queue for this client. Empty if a node has kept one since.
    const std::vector<NodeReport>& refusals() const noexcept { return refusals_; }

    Clock::time_point until() const noexcept { return until_; }

private:
    enum class State : std::uint8_t { away, listening, queued, woken, reserved };

    /// When this client makes attempts.
    struct Attempts {
        Clock::time_point last{};              // when the last one ended
        Clock::time_point due{};               // when one is made whatever the home node reports
        int failed_when_woken = 0;             // how many have failed although the waiter was woken
        Clock::time_point may_reserve_from{};  // when it may reserve a free resource for itself
        Clock::time_point may_come_from{};     // when it may make an attempt because another client woke it
    };

    /// What the home nodes have reported.
    struct Reported {
        std::optional<QueuePlace> place{};
        Clock::time_point holder_seen{};        // when a node last reported a holder
        bool attempted_without_holder = false;  // an attempt was made because no holder was reported since
        int free_in_a_row = 0;                  // reports that the resource is free but not reserved for us
    };

    /// Returns true if the next attempt takes the ticket out of the queue.
    bool leaves_queue() const noexcept { return state_ == State::woken || state_ == State::reserved; }

    /// Makes sure that the waiter listens at a home node. If it has been at the present one for
    /// shortest_stay, it goes to an earlier node if such a node answers. Returns false if there is no node to
    /// wait at.
    bool listen(const RoundLimits& limits) {
        if (!waiter_) waiter_ = nodes_.waiter();
        if (!waiter_) return false;
        const auto home = waiter_->home();
        const bool may_stay = state_ != State::away && homes_[home];
        const auto earlier = homes_ & ~(NodeSet{}.set() << home);
        if (may_stay && (earlier.none() || clock_.now() - home_chosen_at_ < shortest_stay)) return true;
        if (!may_stay) leave_queue(home);
        if (!waiter_->listen(homes_, limits)) return false;
        home_chosen_at_ = clock_.now();
        if (may_stay && waiter_->home() == home) return true;
        leave_queue(home);
        ticket_ = waiter_->new_ticket();
        state_ = State::listening;
        terms_.ticket = ticket_;
        terms_.home = waiter_->home();
        refusals_.clear();
        return true;
    }

    /// Asks the home node once. If the resource is held, blocks until this waiter is woken or until it is
    /// time to ask again. Returns true if an attempt is worth making.
    bool ask_and_sleep(Clock::time_point until, const std::stop_token& stop) {
        const auto now = clock_.now();
        const auto answer = ask({.deadline = until, .stop = stop}, now);
        if (answer.vote == Vote::unknown) {
            if (now_is_before(until, stop)) leave_home(answer.cause, answer.detail);
            return false;
        }
        former_tickets_[waiter_->home()].clear();
        if (answer.vote == Vote::refused) {
            record_place(answer.place, now);
            if (attempt_is_due(now)) return true;
            if (!sleep(std::min(until, next_question(now)), stop)) return false;
        }
        const bool by_another = answer.vote == Vote::refused || now < attempts_.may_reserve_from;
        if (by_another && pause_if_woken_again(until, stop)) return false;
        state_ = by_another ? State::woken : State::reserved;
        return true;
    }

    /// Asks the home node for this waiter's place. If the ticket is not in the queue, the question puts it
    /// there.
    NodeReport ask(const RoundLimits& limits, Clock::time_point now) {
        const auto home = waiter_->home();
        auto terms = terms_;
        terms.waited = std::chrono::duration_cast<std::chrono::microseconds>(now - begun_);
        terms.may_take = now >= attempts_.may_reserve_from;
        terms.former = former_tickets_[home];
        state_ = State::queued;
        return nodes_.ask({.command = {.verb = Verb::enter_queue,
                                       .resources = resource_,
                                       .owner = ticket_,
                                       .queue = &terms},
                           .to = NodeSet{}.set(home)},
                          limits)[home];
    }

    void record_place(const QueuePlace& place, Clock::time_point now) {
        reported_.place = place;
        if (place.held != QueuePlace::Held::by_holder) return;
        reported_.holder_seen = now;
        reported_.attempted_without_holder = false;
    }

    bool now_is_before(Clock::time_point until, const std::stop_token& stop) {
        return !stop.stop_requested() && clock_.now() < until;
    }

    /// Blocks until a message has come, until `until`, or until a stop is requested. Returns true if the
    /// message has the ticket of this waiter. A message with an earlier ticket of this client means that the
    /// resource may be reserved for that ticket. The ticket is then withdrawn, so that the next waiter is
    /// woken. Only the first such message is answered, because a hostile home node may send them without end.
    bool sleep(Clock::time_point until, const std::stop_token& stop) {
        for (bool withdrawn = false; now_is_before(until, stop);) {
            const auto [connected, ticket] = waiter_->sleep(until, stop);
            if (ticket == terms_.ticket) return true;
            if (!connected) {
                lose_connection();
                return false;
            }
            if (!ticket.empty() && !std::exchange(withdrawn, true)) withdraw(ticket, waiter_->home());
        }
        return false;
    }

    /// If this waiter is in a pause (see back_off()), and another client wakes it for the second time in this
    /// pause, waits until the pause is over. Returns true if it has waited. The caller must then ask the home
    /// node whether the resource is still reserved for this waiter.
    ///
    /// The first time, the waiter makes its attempt during the pause, because the resource is kept from other
    /// clients meanwhile. If it did so every time, a home node that wakes it again and again would cause
    /// attempts at the other nodes without end.
    bool pause_if_woken_again(Clock::time_point until, const std::stop_token& stop) {
        const auto from = std::min(attempts_.may_come_from, attempts_.due);
        if (clock_.now() >= from) return false;
        clock_.sleep_until(std::min(until, from), stop);
        return true;
    }

    /// Returns true if the waiter should make an attempt although it was not woken. This is so in three
    /// cases:
    ///
    /// - It is the first in the queue, and its last attempt ended a poll interval ago. The key on the home
    ///   node may be a stray key, and the other nodes may be free. A reserved resource is an exception,
    ///   because the attempt could take it from the waiter that was woken.
    /// - The home node has reported no holder for two poll intervals, and it is this waiter's turn. The
    ///   waiters in front may be unable to come. This happens once until the node reports a holder again.
    /// - The last attempt is 7 to 14 s ago.
    bool attempt_is_due(Clock::time_point now) {
        const auto& place = *reported_.place;
        const bool reserved = place.held == QueuePlace::Held::by_waiter;
        const bool first = place.in_front == 0 && !reserved && now - attempts_.last >= poll_interval;
        const auto turn = attempt_spacing * static_cast<int>(std::min<std::size_t>(place.in_front, 1000));
        const bool nobody_comes =
            !reported_.attempted_without_holder && now - reported_.holder_seen >= 2 * poll_interval + turn;
        reported_.attempted_without_holder = reported_.attempted_without_holder || nobody_comes;
        return first || nobody_comes || now >= attempts_.due;
    }

    /// Returns when to ask the home node again if no message comes.
    Clock::time_point next_question(Clock::time_point now) {
        using namespace std::chrono_literals;
        const auto& place = *reported_.place;
        const auto rarer = static_cast<int>(std::min<std::size_t>(place.in_front, 48));
        auto next =
            now + (place.in_front == 0 ? std::min(random_pause(longest_pause_, entropy_), poll_interval)
                                       : poll_interval + poll_interval * rarer / 16);
        // The first four waiters ask when the key expires. If all waiters did, they would ask at the same
        // time.
        constexpr std::size_t nearly_first = 4;
        if (place.held_for >= 0ms && place.in_front < nearly_first)
            next = std::min(next, now + place.held_for + 1ms);
        // If the resource is free but not reserved for this waiter, dead waiters are in front. One question
        // removes a limited number of them. So the waiter asks again at once, but not without end.
        constexpr int most_in_a_row = 16;
        auto& free = reported_.free_in_a_row;
        free = place.held == QueuePlace::Held::by_nobody ? free + 1 : 0;
        if (free > 0 && free <= most_in_a_row) next = attempts_.may_reserve_from;
        return std::max(next, now + shortest_sleep);
    }

    /// Begins a *pause* after an attempt that failed although the waiter was woken. A waiter of another home
    /// node may have got the lock first, or both may have got some votes and none a majority. Two such
    /// waiters could collide again and again, so each makes a random pause. The pause doubles with each
    /// failure, up to the pause of LockOptions::retry, which counts as at least 10 ms and at most 10 s.
    void back_off(Clock::duration took, bool woken_by_another) {
        using namespace std::chrono_literals;
        const detail::BackOff pauses{
            .shortest = took, .longest = std::clamp<Clock::duration>(longest_pause_, shortest_sleep, 10s)};
        attempts_.may_reserve_from = attempts_.last + pauses.pause(attempts_.failed_when_woken, entropy_);
        if (woken_by_another) attempts_.may_come_from = attempts_.may_reserve_from;
    }

    /// Follows the attempt that was to take the ticket out of the queue. If the home node may not have
    /// processed that command, the waiter disconnects. Otherwise a release could wake this waiter although it
    /// does not expect a message.
    void left_queue(const NodeReport& home) {
        const bool processed = home.vote != Vote::unknown || (home.sent && home.cause == Errc::not_awaited);
        if (processed)
            state_ = State::listening;
        else
            leave_home();
    }

    /// Follows the loss of the listening connection. The connection may have been cut although the node is
    /// well, so the waiter listens at the same node again and keeps its place. If this happens a second time
    /// within a poll interval, the waiter goes to another node.
    void lose_connection() {
        const auto home = waiter_->home();
        const bool same_home_again = clock_.now() - home_chosen_at_ >= poll_interval;
        leave_home();
        homes_[home] = same_home_again;
    }

    /// Disconnects from a home node that has failed or refuses to keep a queue. Unless the caller allows it
    /// again, the node is no home node before it has answered an attempt. The ticket may stay in its queue
    /// until the waiter comes back. `why` and `words` are the answer of the node, if there was one.
    void leave_home(std::error_code why = {}, std::string_view words = {}) {
        const auto home = waiter_->home();
        homes_.reset(home);
        waiter_->disconnect(is_transient(why) ? std::error_code{} : why, words);
        if (std::exchange(state_, State::away) >= State::queued) former_tickets_[home] = ticket_;
        ticket_.clear();
    }

    /// Collects why nodes keep no queue for this client. If none refuses, all have failed as home nodes. This
    /// can pass quickly, so the waiter pauses for a poll interval at most. Its next attempt shows which nodes
    /// answer.
    Wake wait_without_home(Clock::time_point until, const std::stop_token& stop) {
        refusals_.clear();
        if (!waiter_) return Wake::no_queue;
        auto tally = nodes_.blank_tally();
        waiter_->report_refusals(tally);
        for (const auto& node : tally.reports())
            if (node.cause != Errc::not_asked) refusals_.push_back(node);
        if (!refusals_.empty()) return Wake::no_queue;
        const auto pause = std::min(random_pause(longest_pause_, entropy_), poll_interval);
        clock_.sleep_until(std::min(until, clock_.now() + pause), stop);
        return now_is_before(until, stop) ? Wake::attempt : Wake::over;
    }

    /// Takes the ticket out of the queue of this node, if it may be there.
    void leave_queue(std::size_t home) {
        if (std::exchange(state_, State::away) >= State::queued) withdraw(ticket_, home);
        ticket_.clear();
    }

    /// Takes a ticket out of the queue of a node. If the resource was reserved for it there, the next waiter
    /// is woken. Does not wait for the reply, nor for a connection once the time in the queue is over.
    void withdraw(std::string_view ticket, std::size_t home) {
        const QueueTerms terms{.ticket = ticket, .reservation_ttl = terms_.reservation_ttl, .repeated = true};
        (void)nodes_.ask({.command = {.verb = Verb::compare_and_delete,
                                      .resources = resource_,
                                      .owner = ticket,
                                      .queue = &terms},
                          .to = NodeSet{}.set(home)},
                         {.deadline = withdraws_until_, .awaits_answers = false});
    }

    Nodes& nodes_;
    Clock& clock_;
    Entropy& entropy_;
    const Resources resource_;
    const std::chrono::milliseconds longest_pause_;
    const Clock::time_point until_;
    const Clock::time_point begun_;
    State state_ = State::away;
    std::unique_ptr<Waiter> waiter_{};
    NodeSet homes_{};                                      // the nodes at which it may wait
    Clock::time_point home_chosen_at_{};                   // when it last looked for the first of them
    std::string ticket_{};                                 // empty in the state away
    QueueTerms terms_{};                                   // with this ticket
    std::array<std::string, max_nodes> former_tickets_{};  // tickets that a queue may still have
    Clock::time_point withdraws_until_ = Clock::never();
    Attempts attempts_;
    Reported reported_;
    std::vector<NodeReport> refusals_{};
};

/// Records whether other clients wait for the resources, which the replies to a fair release show. If a
/// client that has just released a contended resource wants it again, it enters the queue before its first
/// attempt. If no reply reports a woken waiter, but a node has not replied, nothing is recorded: that node
/// may be the home node.
inline void record_contention(Nodes& nodes, Resources resources, const Tally& tally) {
    const bool woken =
        std::ranges::any_of(tally.reports(), [](const NodeReport& it) { return it.count > 0; });
    const bool unknown = std::ranges::any_of(
        tally.reports(), [](const NodeReport& it) { return it.sent && it.vote == Vote::unknown; });
    if (woken || !unknown)
        for (const auto& resource : resources) nodes.contended().set(resource, woken);
}

}  // namespace redlock::algorithm
