#include "round_driver.hpp"

#include <redlock/detail/memory.hpp>

#include "../round/hash_slot.hpp"
#include "../wire/causes.hpp"
#include "redis_cluster.hpp"

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

namespace redlock {

using detail::QuorumRound;
using StepKind = QuorumRound::Step::Kind;

RoundDriver::RoundDriver(NodeGroup& group, Maker& maker, std::span<const Request> requests,
                         const RoundLimits& limits, std::span<Tally> tallies)
    : group_(group),
      maker_(maker),
      tallies_(tallies),
      round_(requests, limits, group.options().node_timeout, group.options().round, group.nodes().size(),
             tallies),
      start_(clock().now()),
      now_(start_),
      contacts_(group.nodes().size()) {
    group_.prepare_clusters(now_);
    for (std::size_t node = 0; node < size(); ++node) {
        const auto route = group_.route(node, command(), now_);
        contacts_[node] = {.node = route.node, .asking = route.asking};
        const auto health = route.node->refresh(now_);
        round_.set_health(node, health.trusted, health.probe_due);
    }
}

void RoundDriver::end() noexcept {
    if (std::exchange(has_ended_, true)) return;  // the tallies may not exist any more
    for (std::size_t node = 0; node < size(); ++node) {
        if (round_.is_being_asked(node)) round_.end(node, Errc::not_awaited, {}, now_);
        leave(node);
        if (!round_.is_left_alone(node)) continue;
        contacts_[node].node->server().let_releases_probe(now_, group_.network().entropy());
        // Without memory, the report of this node is lost.
        (void)detail::has_memory_for([&] { report_left_alone(node); });
    }
}

void RoundDriver::finish() {
    if (group_.options().observer) group_.notify(round_.requests(), tallies_, clock().now() - start_);
}

std::optional<Clock::time_point> RoundDriver::advance() {
    if (out_of_memory_) throw std::bad_alloc{};
    for (;;) {
        const auto step = round_.next(now_);
        switch (step.kind) {
            case StepKind::ask:
                if (join(step.node)) begin(step.node);
                break;
            case StepKind::give_up: give_up(step); break;
            case StepKind::wait: return step.until;
            case StepKind::done: end(); return std::nullopt;
        }
    }
}

// ---- Steps

/// Continues with a node after join(). If this round may not send on the connection yet, it is added to those
/// that wait to send.
///
/// The connection may break in proceed(). Of a release, fail() then joins another connection and calls
/// begin() for it, and the outer call of begin() has nothing left to do.
void RoundDriver::begin(std::size_t node) {
    const auto* const connection = contacts_[node].connection;
    proceed(node);
    if (round_.is_connecting(node) && contacts_[node].connection == connection)
        contacts_[node].connection->wait_to_write(*this);
}

/// Gets a connection to the node, and reports to the round whether there is one. Returns false if not. Before
/// that, excludes each request that could overtake an earlier command of its owner.
bool RoundDriver::join(std::size_t node) {
    auto& joined = *contacts_[node].node;
    joined.drop_former();  // the rounds of another group may have learned since refresh() that there is one
    for (std::size_t i = 0; i < round_.requests().size(); ++i)
        if (round_.includes(node, i) && joined.could_overtake(round_.requests()[i].command) &&
            !round_.exclude(node, i, detail::earlier_is_pending, now_))
            return false;
    const auto [connection, worth_waiting_for] = joined.join(command(), now_, round_.needs(node));
    if (!connection) {
        round_.on_postponed(node);
        return false;
    }
    contacts_[node].connection = connection;
    round_.on_join(node, worth_waiting_for);
    // A clean-up must be sent even if the round ends before the connection is ready. Therefore it is queued
    // on the connection now. on_sent() follows when the connection is established.
    if (detail::cleans_up(round_.effect()) && !connection->ready()) send(node);
    return true;
}

void RoundDriver::give_up(const Step& step) {
    std::string detail = step.detail;
    if (detail == detail::while_connecting)
        detail = contacts_[step.node].node->with_server(contacts_[step.node].connection->unfinished_step());
    round_.end(step.node, step.cause, detail, now_);
    if (step.timed_out)
        contacts_[step.node].node->config().failed({Errc::timed_out, detail}, now_,
                                                   group_.network().entropy());
    leave(step.node, step.timed_out);
}

// ---- Waiting

/// Calls a recv() that blocks, in place of a poll() and a recv() that does not block.
///
/// The timeout of the recv() is half of node_timeout, and is set when the connection is made. The kernel
/// makes this timeout longer. It rounds the timeout up to whole ticks, which are 10 ms or less, and adds
/// another tick. If the timeout is long, the kernel adds up to an eighth of the timeout in place of the tick.
/// Therefore recv() is called only if at least 98% of node_timeout are left, and node_timeout is 40 ms or
/// more. The recv() then returns before `until`, even in the worst cases of the rounding:
///
///     node_timeout | timeout of recv() | at most, with ticks of 10 ms | 98% of node_timeout
///     -------------+-------------------+------------------------------+--------------------
///     40 ms        | 20 ms             | 2 + 1 ticks: 30 ms           | 39.2 ms
///     41 ms        | 20.5 ms           | 3 + 1 ticks: 40 ms           | 40.18 ms
///     61 ms        | 30.5 ms           | 4 + 1 ticks: 50 ms           | 59.78 ms
bool RoundDriver::try_blocking_receive(Clock::time_point until) {
    using namespace std::chrono_literals;
    if (group_.options().node_timeout < 40ms ||
        until - now_ < group_.options().node_timeout - group_.options().node_timeout / 50)
        return false;
    const auto node = round_.only_one_sent();
    if (!node || !contacts_[*node].connection->ready() || contacts_[*node].connection->unsent()) return false;
    now_ = contacts_[*node].node->blocking_receive(*contacts_[*node].connection);
    return true;
}

// ---- One node

/// Continues with the handshake, sends the commands, and takes the answers, as far as each is possible now.
void RoundDriver::proceed(std::size_t node) {
    auto& contact = contacts_[node];
    if (contact.node->cluster() && follow_servers(node)) return;
    auto& connection = *contact.connection;
    if (round_.is_connecting(node)) {
        // The run id identifies the server. fetch_run_id() does nothing if the command needs no run id, or if
        // the run id is known. While it is being fetched, the connection is not ready, so may_send() is
        // false.
        connection.fetch_run_id(round_.command_of_next_reply(node));
        if (connection.may_send(round_.effect(), now_)) {
            if (fail_if_duplicate(node)) return;
            round_.on_sent(node);
            if (!contact.awaits_reply) send(node);  // otherwise it was queued by join()
        } else if (connection.ready()) {
            round_.on_held_back(node);
        }
    }
    take_answers(node);
}

/// Continues with the node, and then adds the round to the list of the rounds that can continue, unless the
/// round goes on waiting. Returns true if the round still waits until it may send. If there is no memory, the
/// round leaves the connection, and the next call of advance() throws std::bad_alloc.
bool RoundDriver::on_progress(std::size_t node, Clock::time_point now) noexcept {
    now_ = now;
    if (!detail::has_memory_for([&] { proceed(node); })) {
        out_of_memory_ = true;
        leave(node);
    }
    if (out_of_memory_ || !round_.goes_on_waiting()) maker_.wake();
    return contacts_[node].connection && round_.is_connecting(node);
}

/// Writes the commands of all requests that lack the vote of this node. Only a command with QueueTerms
/// differs from node to node: the acquisition of a waiter has them at its home node only, and a release that
/// is sent to a node for the second time says so.
void RoundDriver::send(std::size_t node) {
    const auto requests = round_.requests();
    auto& contact = contacts_[node];
    contact.awaits_reply = true;
    // ASKING has an entry of its own in front.
    contact.first_number = contact.connection->pending().next_number() + (contact.asking ? 1 : 0);
    if (requests.size() == 1) {
        auto of_node = command();
        QueueTerms queue{};
        if (of_node.queue) {
            queue = *of_node.queue;
            queue.only_passes_on = queue.only_passes_on || round_.is_repeated(node);
            of_node.queue = acquires(of_node.verb) && node != queue.home ? nullptr : &queue;
        }
        return contact.connection->send({&of_node, 1}, *this, round_.awaits_answers(), &command_,
                                        contact.asking);
    }
    std::vector<Command> commands;
    commands.reserve(requests.size());
    for (std::size_t i = 0; i < round_.requests().size(); ++i)
        if (round_.lacks_vote(node, i)) commands.push_back(requests[i].command);
    contact.connection->send(commands, *this, round_.awaits_answers());
}

/// One server must not have two votes (rule D8 in docs/rules.md). If it already answers for another node in
/// this round, ends the part of this node, and returns true. A release is sent to both nodes nevertheless.
bool RoundDriver::fail_if_duplicate(std::size_t node) {
    const auto& run_id = contacts_[node].connection->run_id();
    if (run_id.empty() || round_.is_release()) return false;
    const auto server = std::hash<std::string>{}(run_id);
    const auto other = std::ranges::find(contacts_, server, &Contact::server);
    if (other == contacts_.end() || other == &contacts_[node]) {
        contacts_[node].server = server;
        return false;
    }
    fail(node, Errc::same_server, "as " + other->node->config().endpoint.name());
    return true;
}

/// Returns true if the server is a replica, or a master that has lost its replicas. The Sentinels may then
/// name another server, to which only a new connection leads.
static bool may_be_replaced(std::error_code cause, const detail::Reply& reply) {
    return cause == Errc::read_only || reply.is_error("NOREPLICAS");
}

void RoundDriver::take_answers(std::size_t node) {
    auto& connection = *contacts_[node].connection;
    // If the connection broke, the node has failed, whatever it answered before.
    if (connection.broken()) return fail(node, connection.cause(), connection.detail());
    while (const auto* const answer =
               round_.is_sent(node) ? connection.pending().take_answer(*this) : nullptr)
        if (!take_answer(node, *answer)) return;
    if (connection.broken()) fail(node, connection.cause(), connection.detail());
}

/// Reports the answer to the round as a vote. Returns true if another answer may have arrived already.
bool RoundDriver::take_answer(std::size_t node, const detail::PendingReply& answer) {
    auto& contact = contacts_[node];
    auto& connection = *contact.connection;
    const auto& reply = answer.reply;
    if (answer.is_form_refused(reply)) {
        // The connection has recorded the refusal, so it chooses another form now (Connection::send()). Of
        // several commands, the later ones are sent again as well, so that the replies keep the order of the
        // requests. They are extensions, which may be executed twice.
        stop_awaiting(node);
        send(node);
        if (connection.broken()) fail(node, connection.cause(), connection.detail());
        return false;
    }
    const bool redirected = contact.node->cluster() && reply.kind == detail::Reply::Kind::error &&
                            detail::parse_redirection(reply.text).has_value();
    if (redirected && follow_redirection(node, answer)) return false;
    auto vote = detail::to_vote(round_.command_of_next_reply(node), reply, answer.script != nullptr);
    if (redirected) vote.cause = Errc::server_busy;
    const bool is_former = contact.node->config().has_sentinels() && may_be_replaced(vote.cause, reply);
    if (is_former || vote.cause == Errc::unexpected_reply) {
        connection.fail(is_former ? Errc::connection_failed : Errc::unexpected_reply,
                        connection.quoted(reply.text));
        fail(node, connection.cause(), connection.detail(), /*maybe_executed=*/!is_former);
        return false;
    }
    if (!round_.has_replied(node)) contact.node->server().succeeded();
    auto text = vote.cause ? connection.quoted(reply.text) : std::string{};
    if (const auto hint = detail::hint_for(reply); vote.cause && !redirected && !hint.empty())
        text += "; " + std::string{hint};
    // The text that Verb::query returns is reported as the detail.
    if (vote.vote == Vote::granted && reply.kind == detail::Reply::Kind::text) text = reply.text;
    // A name or a proxy may lead to a new master by now, but only a new connection.
    if (vote.cause == Errc::read_only) connection.fail(vote.cause, text);
    const bool last = round_.on_vote(node, vote, std::move(text), now_);
    contact.awaits_reply = !last;
    if (last) leave(node);
    return !last;
}

/// Ends the round for a node that has failed. If its connection broke, a release is sent once more instead.
/// `maybe_executed` is false if the reply of the server says that it has executed nothing.
void RoundDriver::fail(std::size_t node, std::error_code cause, const std::string& detail,
                       bool maybe_executed) {
    const auto told = contacts_[node].node->with_server(detail);
    if (!contacts_[node].connection->has_shortage())
        contacts_[node].node->config().failed({cause, told}, now_, group_.network().entropy());
    if (contacts_[node].node->cluster() && !contacts_[node].awaits_reply && round_.on_unreachable(node, now_))
        if (const auto route = group_.route(node, command(), now_); route.node != contacts_[node].node)
            return move_to(node, route, {});
    const bool disconnected = contacts_[node].connection->broken();
    const bool again = round_.on_failed(node, cause, told, disconnected, now_, maybe_executed);
    if (!again) return leave(node);
    // The round itself sends the release again, so leave() must not leave it to the node. If there is no
    // memory for that, the node sends it later.
    const auto route = group_.route(node, command(), now_);
    move_to(node, route, contacts_[node].connection->pending().take_releases(*this));
}

/// Leaves the connection, and sends the command over another one. `releases` is the command, if it is a
/// release.
void RoundDriver::move_to(std::size_t node, NodeGroup::Route route, detail::PendingReplies releases) {
    leave(node);
    contacts_[node].node = route.node;
    contacts_[node].asking = route.asking;
    try {
        if (join(node))
            begin(node);  // a release always gets a connection
        else if (round_.is_left_alone(node))
            report_left_alone(node);  // its time has begun already
    } catch (const std::bad_alloc&) {
        contacts_[node].node->server().kept().keep(std::move(releases), true);
        throw;
    }
}

// ---- The servers of a Redis Cluster

/// If the command was not sent yet, and another server serves its hash slot by now, moves there, and returns
/// true. Before that, has the list of servers brought up to date if necessary. A server that has failed is
/// not an aim, because the present one, if it is another, may know better.
bool RoundDriver::follow_servers(std::size_t node) {
    auto& connection = *contacts_[node].connection;
    if (!round_.is_connecting(node) || contacts_[node].awaits_reply || contacts_[node].asking) return false;
    if (connection.ready()) connection.fetch_servers(now_);
    auto* const serving = connection.ready() ? group_.served_by(node, command()) : nullptr;
    if (!serving || serving == contacts_[node].node || !serving->trusted(now_)) return false;
    if (contacts_[node].node->binding_command_of(command().owner))
        return false;  // the command must follow its SET
    move_to(node, {serving}, {});
    return true;
}

/// Sends the command to the server that this answer names, and returns true. Returns false if this is not
/// possible. A release is then sent there later.
bool RoundDriver::follow_redirection(std::size_t node, const detail::PendingReply& answer) {
    const auto to = *detail::parse_redirection(answer.reply.text);
    contacts_[node].node->server().succeeded();
    auto* const target = group_.redirected(*contacts_[node].node, to);
    const bool follows =
        target && round_.requests().size() == 1 && round_.on_redirected(node, to.asking, now_);
    if (!follows) {
        const auto& asked = contacts_[node].node->config();
        if (answer.releases()) asked.cluster->keep(answer, to, asked.endpoint.host);
        return false;
    }
    detail::PendingReplies releases;
    if (answer.releases()) releases.add_repetition(answer).asking = to.asking;
    move_to(node, {target, to.asking}, std::move(releases));
    return true;
}

/// Reports that a node was not asked, because it has failed before.
void RoundDriver::report_left_alone(std::size_t node) {
    const auto failure = contacts_[node].node->server().last_failure();
    auto detail = "after: " + failure.cause.message();
    if (!failure.detail.empty()) detail += ", " + failure.detail;
    // A cause that does not go away by itself says more than `backing_off`.
    const auto cause = is_transient(failure.cause) ? make_error_code(Errc::backing_off) : failure.cause;
    round_.end(node, cause, detail, now_);
}

/// Does not wait any more for the replies that have not come. When they come, they are late.
void RoundDriver::stop_awaiting(std::size_t node) noexcept {
    auto& contact = contacts_[node];
    if (contact.awaits_reply)
        contact.connection->pending().stop_awaiting(*this, contact.first_number, round_.requests().size());
    contact.awaits_reply = false;
}

/// Leaves the connection. Replies that have not arrived are late from now on. If the node has timed out on a
/// connection that was ready, this drains (connection_choice.hpp).
void RoundDriver::leave(std::size_t node, bool timed_out) noexcept {
    auto& contact = contacts_[node];
    if (!contact.connection) return;
    stop_awaiting(node);
    contact.connection->leave(*this);
    if (timed_out && contact.connection->was_ready()) contact.connection->start_draining(now_);
    contact.connection = nullptr;
}

}  // namespace redlock
