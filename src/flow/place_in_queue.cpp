// The steps of a wait, and how a waiter leaves the queue. The header has the states.
#include "place_in_queue.hpp"

#include <redlock/algorithm/algorithm.hpp>
#include <redlock/algorithm/waiting.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace redlock::flow {

using namespace algorithm;

namespace {

/// Returns the nodes that can be a home node after an attempt with these reports: all nodes except those that
/// failed in this attempt. A node that was not asked because it had failed before (`left_alone`) can be a
/// home node, because it may have recovered, and only a connection can show that.
NodeSet possible_homes(std::span<const NodeReport> reports) {
    NodeSet result;
    for (std::size_t node = 0; node < reports.size(); ++node)
        result[node] = reports[node].left_alone || !detail::failed_to_vote(reports[node]);
    return result;
}

}  // namespace

PlaceInQueue::PlaceInQueue(Operation& operation, Clock& clock, Entropy& entropy, Resources resource,
                           std::chrono::milliseconds longest_pause, Clock::time_point until,
                           std::stop_token stop)
    : Steps(operation),
      clock_(clock),
      until_(until),
      limits_{.stop = std::move(stop)},
      turn_{.resource = resource, .since = clock.now(), .limits = &limits_},
      timing_(turn_.since, longest_pause, entropy) {
    terms_.reservation_ttl = withdrawal_.reservation_ttl = reservation_ttl(nodes().node_timeout());
    withdrawal_.only_passes_on = true;
    homes_.set();
}

// ---- The steps of a wait

Flow PlaceInQueue::wait(Clock::time_point until) {
    limits_.deadline = std::min(until, until_);
    return wait_within_limits();
}

/// If an attempt is due before the turn of this waiter comes, ends with `attempt`. While the loop runs,
/// `wake_` is `over`.
Flow PlaceInQueue::wait_within_limits() {
    wake_ = Wake::over;
    if (!waiter_) waiter_ = nodes().waiter();
    while (now_is_before(limits_.deadline) && wake_ == Wake::over) {
        if (waiter_) {
            turn_.attempt_due = timing_.attempt_due();
            const bool had_turn = turn_.has_come;
            co_await wait_for(AwaitedTurn{waiter_.get(), &turn_});
            if (turn_.has_come && !had_turn) timing_.begin_turn(clock_.now());
            if (!now_is_before(limits_.deadline)) break;
            if (!turn_.has_come) {
                wake_ = Wake::attempt;
                break;
            }
            const auto finding = find_home();
            co_await finding;
        }
        const auto waiting = listens_ ? ask_and_sleep() : wait_without_home();
        co_await waiting;
        if (!listens_) break;
    }
    co_return std::error_code{};
}

/// Makes sure that the waiter listens at a home node (docs/waiting.md, Another home node). `listens_` is
/// false afterwards if there is none.
Flow PlaceInQueue::find_home() {
    const auto home = waiter_->home();
    const bool may_stay = state_ != State::away && homes_[home];
    const auto earlier = homes_ & ~(NodeSet{}.set() << home);
    listens_ = may_stay && (earlier.none() || clock_.now() - home_chosen_at_ < shortest_stay);
    if (listens_) co_return std::error_code{};
    if (!may_stay) leave_queue();  // its home node, if any, has failed; another one may not be found
    co_await wait_for(AwaitedListen{waiter_.get(), homes_, &limits_, &listens_});
    if (!listens_) co_return std::error_code{};
    home_chosen_at_ = clock_.now();
    if (may_stay && waiter_->home() == home) co_return std::error_code{};
    leave_queue();  // of the former home node, which `terms_` still names
    ticket_ = waiter_->new_ticket();
    state_ = State::listening;
    terms_.ticket = ticket_;
    terms_.home = waiter_->home();
    refusals_.clear();
    timing_.arrive(clock_.now());
    co_return std::error_code{};
}

/// Asks the home node once, which puts the ticket into the queue. If the resource is held, sleeps until this
/// waiter is woken or until it is time to ask again. `wake_` is `attempt` afterwards if an attempt is worth
/// making. After failed attempts, a message of another client leads to no attempt until a pause is over
/// (WaiterTiming::failed_when_reserved()). The flow then waits for the end of the pause.
Flow PlaceInQueue::ask_and_sleep() {
    const auto now = clock_.now();
    auto terms = terms_;
    terms.waited = std::chrono::duration_cast<std::chrono::microseconds>(now - turn_.since);
    terms.may_take = timing_.may_reserve(now);
    terms.former = former_tickets_[terms_.home];
    const Request question{.command = {.verb = Verb::enter_queue,
                                       .resources = turn_.resource,
                                       .owner = ticket_,
                                       .queue = &terms},
                           .to = NodeSet{}.set(terms_.home)};
    state_ = State::queued;
    auto votes = blank_votes();
    co_await ask(question, limits_, *votes);

    const auto& answer = (*votes)[terms_.home];
    if (answer.vote == Vote::unknown) {
        if (!now_is_before(limits_.deadline)) co_return std::error_code{};
        if (answer.cause == Errc::lost)
            lose_subscription();
        else
            leave_home(answer.cause, answer.detail);
        co_return std::error_code{};
    }
    unsubscribed_ = false;
    former_tickets_[terms_.home].clear();
    // True if another client is the cause of the attempt that may follow. After a refusal, only its message
    // leads on from here. A grant mostly means that the question itself has reserved the resource. But in a
    // pause (WaiterTiming), the question has no `may_take`, and reserves nothing.
    const bool by_another = answer.vote == Vote::refused || !timing_.may_reserve(now);
    if (answer.vote == Vote::refused) {
        turn_.place = answer.place;
        if (timing_.begins_attempt(*turn_.place, now)) {
            wake_ = Wake::attempt;
            co_return std::error_code{};
        }
        sleep_until_ = std::min(limits_.deadline, timing_.next_question(*turn_.place, now));
        votes.reset();
        const auto sleeping = await_message();
        co_await sleeping;
        if (!message_is_ours_) co_return std::error_code{};
    }
    const auto may_come_from = timing_.may_come_from();
    if (by_another && clock_.now() < may_come_from) {
        co_await pause(clock_, std::min(limits_.deadline, may_come_from), limits_.stop);
        co_return std::error_code{};  // wait_within_limits() asks again
    }
    state_ = by_another ? State::woken : State::reserved;
    wake_ = Wake::attempt;
    co_return std::error_code{};
}

/// Sleeps until a message has come, until `sleep_until_`, or until a stop is requested. `message_is_ours_` is
/// true afterwards if the message has the present ticket. An earlier ticket is withdrawn, because the
/// resource may be reserved for it. This is done only for the first such message, because a faulty home node
/// could send them without end.
Flow PlaceInQueue::await_message() {
    message_is_ours_ = false;
    for (bool withdrawn = false; now_is_before(sleep_until_);) {
        co_await wait_for(AwaitedMessage{waiter_.get(), sleep_until_, &limits_.stop, &message_});
        message_is_ours_ = message_.ticket == terms_.ticket;
        if (message_is_ours_) break;
        if (!message_.connected) {
            lose_connection();
            break;
        }
        if (message_.ticket.empty() || std::exchange(withdrawn, true)) continue;
        send(withdrawal_of(message_.ticket), limits_.deadline);
    }
    co_return std::error_code{};
}

/// Ends with `no_queue` if a node has refused to keep a queue. Otherwise all nodes have failed. Then the flow
/// pauses, and ends with `attempt`, because an attempt shows which nodes answer.
Flow PlaceInQueue::wait_without_home() {
    collect_refusals();
    wake_ = Wake::no_queue;
    if (!waiter_ || !refusals_.empty()) co_return std::error_code{};
    const auto until = clock_.now() + timing_.short_pause();
    co_await pause(clock_, std::min(limits_.deadline, until), limits_.stop);
    wake_ = now_is_before(limits_.deadline) ? Wake::attempt : Wake::over;
    co_return std::error_code{};
}

/// Collects why nodes keep no queue for this client.
void PlaceInQueue::collect_refusals() {
    refusals_.clear();
    if (!waiter_) return;
    const auto reasons = blank_votes();
    waiter_->report_refusals(*reasons);
    for (const auto& node : reasons->reports())
        if (node.cause != Errc::not_asked) refusals_.push_back(node);
}

// ---- Leaving the queue

void PlaceInQueue::leave() noexcept {
    leave_queue();
    waiter_.reset();  // gives its listener back
}

/// Removes the ticket from the home node, if it may be there. If there is no memory, the node removes the
/// ticket by itself.
void PlaceInQueue::leave_queue() noexcept {
    if (const auto withdrawal = unreleased()) send(*withdrawal, limits_.deadline);
    state_ = State::away;
    ticket_.clear();
}

std::optional<Request> PlaceInQueue::unreleased() noexcept {
    return state_ >= State::queued ? std::optional{withdrawal_of(ticket_)} : std::nullopt;
}

/// Returns the command that removes this ticket from the home node. If the resource was reserved for it
/// there, the next waiter is woken.
Request PlaceInQueue::withdrawal_of(std::string_view ticket) noexcept {
    withdrawal_.ticket = ticket;
    return algorithm::withdraw_request(turn_.resource, withdrawal_, terms_.home);
}

// ---- What has happened

void PlaceInQueue::attempted(std::error_code error, const Tally& votes, Clock::duration took) {
    const bool was_reserved = attempt_deletes_reservation();
    const auto by = state_ == State::woken ? ReservedBy::another_client : ReservedBy::its_question;
    if (was_reserved) record_departure(votes[waiter_->home()]);
    timing_.end_attempt(clock_.now());
    if (error != Errc::held_by_other) return;
    nodes().contended().set(turn_.resource.front(), true);
    homes_ = possible_homes(votes.reports());
    if (was_reserved) timing_.failed_when_reserved(by, took);
}

/// Is called after an attempt that should delete the reservation. If the home node may not have executed the
/// command of the attempt, the waiter disconnects, so that no release wakes it in vain. A command that was
/// sent, but is `not_awaited`, will be executed.
void PlaceInQueue::record_departure(const NodeReport& home) {
    const bool executed = home.vote != Vote::unknown || (home.sent && home.cause == Errc::not_awaited);
    if (executed)
        state_ = State::listening;
    else
        leave_home();
}

/// Is called when the connection to the home node is lost. The node may be well, so the waiter listens there
/// again and keeps its place. But if find_home() has chosen this node less than a poll interval ago, even if
/// it was the home node before, the waiter goes to another node.
void PlaceInQueue::lose_connection() {
    const auto home = waiter_->home();
    const bool same_home_again = clock_.now() - home_chosen_at_ >= poll_interval;
    leave_home();
    homes_[home] = same_home_again;
}

/// Is called when the home node does not know the subscription (docs/waiting.md, A lost subscription). The
/// waiter subscribes there again once, and then goes to another node.
void PlaceInQueue::lose_subscription() {
    const auto home = waiter_->home();
    waiter_->lose_subscription();
    leave_home();
    homes_[home] = !std::exchange(unsubscribed_, true);
}

/// Disconnects from a home node that has failed or refuses to keep a queue. It can be the home node again
/// after an attempt in which it has not failed. Until then the ticket may stay in its queue. `why` and
/// `words` are the answer of the node, and empty if there was none.
void PlaceInQueue::leave_home(std::error_code why, std::string_view words) {
    const auto home = waiter_->home();
    homes_.reset(home);
    waiter_->disconnect(is_transient(why) ? std::error_code{} : why, words);
    if (std::exchange(state_, State::away) >= State::queued) former_tickets_[home] = ticket_;
    ticket_.clear();
}

}  // namespace redlock::flow
