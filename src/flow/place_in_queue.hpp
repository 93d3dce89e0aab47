// The place of a waiter in the queue (waiting.hpp), as flows (flow.hpp).
#pragma once

#include <redlock/entropy.hpp>

#include "flow.hpp"
#include "waiter_timing.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock::flow {

/// The place of one acquire() in the queue for one resource. The waiter asks its home node and makes
/// attempts. WaiterTiming decides when it does so. waiting.hpp explains the words.
///
///     state     | meaning                                      | transitions
///     ----------+----------------------------------------------+-----------------------------------------
///     away      | listens at no node, and has no ticket        | has subscribed at a home node, and got a
///               |                                              | new ticket → listening
///     listening | is subscribed at the home node; its ticket   | asks the home node → queued
///               | is not in the queue                          | goes to another node → away
///     queued    | its ticket may be in the queue of the home   | receives a message → woken
///               | node                                         | the node grants its question → reserved
///               |                                              | the node grants a question that must not
///               |                                              | reserve (QueueTerms::may_take): a command
///               |                                              | of another client has done so → woken
///               |                                              | the node has failed, the connection is
///               |                                              | lost, goes to another node → away
///     woken     | another client has woken it: its ticket is   | the attempt has reached the home node
///               | out of the queue, and the resource may be    | → listening
///               | reserved for it. Its next attempt deletes    | the attempt may not have reached it
///               | this reservation.                            | → away
///     reserved  | its own question has reserved the resource   | as woken
///
/// If a pause (WaiterTiming::failed_when_reserved()) forbids the attempt, the waiter stays queued in place of
/// woken, and asks the home node again at the end of the pause. An attempt that the waiter makes although it
/// was not woken changes no state.
class PlaceInQueue final : public Steps {
public:
    /// All arguments must outlive the object. Each wait ends at `until` at the latest, or when a stop is
    /// requested.
    PlaceInQueue(Operation& operation, Clock& clock, Entropy& entropy, Resources resource,
                 std::chrono::milliseconds longest_pause, Clock::time_point until, std::stop_token stop);

    enum class Wake : std::uint8_t {
        attempt,   ///< An attempt is worth making.
        over,      ///< The limit has passed, or a stop was requested. The ticket may still be in the queue.
        no_queue,  ///< No node keeps a queue for this client.
    };

    /// Returns the flow that waits until an attempt is worth making, but at most until `until`. Afterwards
    /// wake() says why it has ended.
    Flow wait(Clock::time_point until);
    Wake wake() const noexcept { return wake_; }

    /// Leaves the queue for good.
    void leave() noexcept;

    /// Returns the ticket and the other queue terms of the next attempt, if it deletes the reservation, and
    /// otherwise null. In the state queued, the waiter keeps its place during the attempt.
    const QueueTerms* terms() const noexcept { return attempt_deletes_reservation() ? &terms_ : nullptr; }

    /// Records the outcome of an attempt, and how long the attempt took.
    void attempted(std::error_code error, const Tally& votes, Clock::duration took);

    /// Returns the place that the home node reported last; nothing if it has reported none.
    const std::optional<QueuePlace>& last() const noexcept { return turn_.place; }

    /// Returns why nodes keep no queue for this client. Empty if it has found a home node since. May be
    /// called once.
    std::vector<NodeReport> take_refusals() noexcept { return std::move(refusals_); }

    /// Returns when each wait ends at the latest.
    Clock::time_point until() const noexcept { return until_; }

    /// Returns the command that is left to do after the flow was destroyed or has thrown: it removes the
    /// ticket. Returns nothing if the home node cannot have the ticket. The command is valid as long as this
    /// object.
    std::optional<Request> unreleased() noexcept;

private:
    // In this order, because from `queued` on, the home node can have the ticket: in the queue, or as the
    // value of the reserved resource.
    enum class State : std::uint8_t { away, listening, queued, woken, reserved };

    // The steps of a wait.
    Flow wait_within_limits();
    Flow find_home();
    Flow ask_and_sleep();
    Flow await_message();
    Flow wait_without_home();

    bool attempt_deletes_reservation() const noexcept {
        return state_ == State::woken || state_ == State::reserved;
    }
    bool now_is_before(Clock::time_point until) const noexcept {
        return !limits_.stop.stop_requested() && clock_.now() < until;
    }
    void leave_queue() noexcept;
    Request withdrawal_of(std::string_view ticket) noexcept;
    void record_departure(const NodeReport& home);
    void lose_connection();
    void lose_subscription();
    void leave_home(std::error_code why = {}, std::string_view words = {});
    void collect_refusals();

    Clock& clock_;
    const Clock::time_point until_;
    RoundLimits limits_;  // of the present or last wait
    State state_ = State::away;
    std::unique_ptr<Waiter> waiter_{};
    NodeSet homes_{};                                      // the nodes at which it may wait
    bool unsubscribed_ = false;                            // the home node did not know the subscription
    Clock::time_point home_chosen_at_{};                   // when find_home() last chose one of homes_
    std::string ticket_{};                                 // empty in the state away
    QueueTerms terms_{};                                   // with this ticket
    QueueTerms withdrawal_{};                              // with the ticket that is or was withdrawn last
    std::array<std::string, max_nodes> former_tickets_{};  // tickets that a queue may still have
    Turn turn_;  // the resource, the last report of a home node, and whether this waiter may enter the queue
    WaiterTiming timing_;
    std::vector<NodeReport> refusals_{};

    // What the flows pass to each other.
    Wake wake_ = Wake::over;
    bool listens_ = false;             // find_home(): the waiter listens at a home node
    Clock::time_point sleep_until_{};  // await_message(): its limit
    Waiter::WakeUp message_{};         // await_message(): what has come last
    bool message_is_ours_ = false;     // await_message(): it has the present ticket
};

}  // namespace redlock::flow
