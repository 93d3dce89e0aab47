#include "redis/round_driver.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace redlock {

using detail::QuorumRound;
using Kind = QuorumRound::Step::Kind;

RoundDriver::RoundDriver(std::span<const std::unique_ptr<Node>> nodes, detail::DuplicateServerCheck& servers,
                         Network& network, Clock::duration node_timeout, QuorumRound& round)
    : nodes_(nodes),
      servers_(servers),
      network_(network),
      clock_(network.clock()),
      node_timeout_(node_timeout),
      round_(round),
      now_(clock_.now()) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) nodes_[node]->look(now_, node, round_);
}

RoundDriver::~RoundDriver() {
    end();
}

void RoundDriver::end() noexcept {
    try {
        for (std::size_t node = 0; node < nodes_.size(); ++node) {
            if (round_.is_open(node)) round_.end(node, Errc::not_awaited, {}, now_);
            if (round_.is_left_alone(node)) report_left_alone(node);
            if (connections_[node]) check_in(node);
        }
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a report or a connection is lost
    }
}

void RoundDriver::run() {
    for (;;) {
        const auto step = round_.next(now_);
        switch (step.kind) {
            case Kind::ask: ask(step.node); break;
            case Kind::give_up: give_up(step); break;
            case Kind::wait: wait(step.until); break;
            case Kind::done: return end();
        }
    }
}

// ---- Steps

void RoundDriver::ask(std::size_t node) {
    // A request whose SET is still pending on another connection would overtake it here.
    if (round_.requests().size() > 1)
        for (const auto request : nodes_[node]->overtaking(round_.requests()))
            if (round_.includes(node, request) &&
                !round_.exclude(node, request, "its SET is still pending", now_))
                return;
    if (check_out(node)) proceed(node);
    now_ = clock_.now();
}

/// Takes a connection to the node, and reports to the round that the node is connecting or left alone.
/// Returns false if there is no connection.
bool RoundDriver::check_out(std::size_t node) {
    const bool needed = round_.needs(node);
    const auto requests = round_.requests();
    auto [connection, trusted, too_many_pending] =
        requests.size() == 1 ? nodes_[node]->check_out(requests.front().command, now_, needed)
                             : nodes_[node]->check_out_for_many(now_, needed);
    if (too_many_pending) {
        round_.end(node, Errc::not_asked, "too many replies are pending behind its SET", now_);
        return false;
    }
    if (!connection) {
        round_.on_left_alone(node);
        return false;
    }
    connections_[node] = std::move(connection);
    answered_[node] = 0;
    round_.on_check_out(node, trusted);
    // Queue the release now, while std::bad_alloc can still be reported. The connection keeps it when the
    // round ends.
    queued_[node] = round_.is_release() && !connections_[node]->greeted();
    if (queued_[node]) write(node);
    return true;
}

void RoundDriver::give_up(const Step& step) {
    if (step.timed_out) nodes_[step.node]->failed({Errc::timed_out, step.detail}, now_);
    check_in(step.node);
}

void RoundDriver::wait(Clock::time_point until) {
    using namespace std::chrono_literals;
    std::array<PollEntry, max_nodes> entries{};
    std::array<std::size_t, max_nodes> node_of{};
    std::size_t count = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        if (!round_.is_open(node)) continue;
        entries[count] = connections_[node]->poll_entry();
        node_of[count++] = node;
    }
    // Fast path: if one reply is awaited, a blocking recv() replaces poll() and recv(). Its timeout is half
    // of node_timeout, rounded to the ticks of the kernel, and cannot be changed for a single call. Therefore
    // the fast path is only used while nearly the whole node_timeout is left.
    const bool whole_budget = node_timeout_ >= 40ms && until - now_ >= node_timeout_ - node_timeout_ / 50;
    const bool only_one = count == 1 && round_.is_only_one_sent(node_of[0]);
    if (only_one && whole_budget && connections_[node_of[0]]->ready() &&
        !connections_[node_of[0]]->unsent()) {
        connections_[node_of[0]]->receive_or_wait();
        now_ = clock_.now();
        take_answers(node_of[0]);
        return;
    }
    network_.wait({entries.data(), count}, now_, until);
    now_ = clock_.now();
    for (std::size_t i = 0; i < count; ++i)
        if (entries[i].ready) proceed(node_of[i]);
}

// ---- One node

/// Continues with a node whose connection is new or ready for I/O: finishes the handshake, sends the commands
/// as soon as possible, and takes the answers.
void RoundDriver::proceed(std::size_t node) {
    auto& connection = *connections_[node];
    const bool was_ready = connection.ready();
    if (round_.is_sent(node) || !was_ready) connection.advance();
    if (!was_ready && connection.ready()) nodes_[node]->connected();
    if (round_.is_connecting(node)) connection.fetch_run_id(round_.next_answered(node));
    // A release may be written behind the handshake, so that a node that does not answer now finds it later.
    const bool may_send = round_.is_release() ? connection.greeted() : connection.ready();
    if (round_.is_connecting(node) && may_send) {
        if (is_duplicate(node)) return;
        send(node);
    }
    take_answers(node);
}

/// The form of a command for one node. The attempt of a waiter removes the ticket from the queue at its home
/// node only. A release that is sent a second time is marked as repeated, because the first one may have
/// woken a waiter.
struct RoundDriver::Form {
    Form(const QuorumRound& round, std::size_t node, const Command& any) : command(any) {
        if (!command.queue) return;
        queue = *command.queue;
        queue.repeated = queue.repeated || round.is_repeated(node);
        command.queue = acquires(command.verb) && node != queue.home ? nullptr : &queue;
    }
    Form(const Form&) = delete;
    Form& operator=(const Form&) = delete;

    Command command;
    QueueTerms queue{};
};

void RoundDriver::send(std::size_t node) {
    round_.on_sent(node);
    if (!queued_[node]) write(node);
}

/// Writes the commands of all requests that include this node.
void RoundDriver::write(std::size_t node) {
    const auto requests = round_.requests();
    if (requests.size() == 1) {
        const Form form{round_, node, requests.front().command};
        return connections_[node]->send({&form.command, 1}, round_.awaits_answers());
    }
    std::vector<Command> commands;
    commands.reserve(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i)
        if (round_.includes(node, i)) commands.push_back(requests[i].command);
    connections_[node]->send(commands);
}

/// Returns true if the server already answers for another node. Then this node has no vote, and its part of
/// the round has failed. A release is sent nevertheless.
bool RoundDriver::is_duplicate(std::size_t node) {
    const auto& run_id = connections_[node]->run_id();
    if (run_id.empty() || round_.is_release()) return false;
    const auto other = servers_.other_node_of(node, run_id, now_);
    if (other) fail(node, Errc::same_server, "as " + nodes_[*other]->name());
    return other.has_value();
}

/// Reports each answer that has arrived to the round. After the last one, gives the connection back.
void RoundDriver::take_answers(std::size_t node) {
    auto& connection = *connections_[node];
    // If the connection broke while reading, its answers cannot be trusted either.
    if (connection.broken()) return fail(node, connection.cause(), connection.detail());
    if (!round_.is_sent(node)) return;
    if (connection.must_resend()) {
        connection.resend(Form{round_, node, round_.next_answered(node)}.command);
        return connection.broken() ? fail(node, connection.cause(), connection.detail()) : void();
    }
    const auto answers = connection.answers();
    for (auto& answered = answered_[node]; answered < answers.size();) {
        const auto& reply = answers[answered++];
        const auto vote = detail::to_vote(round_.next_answered(node), reply, connection.scripted());
        if (vote.cause == Errc::unexpected_reply) {
            connection.fail(Errc::unexpected_reply, connection.quoted(reply.text));
            return fail(node, vote.cause, connection.detail());
        }
        // The Sentinels may name another server by now, so a new connection is needed.
        if (vote.cause == Errc::read_only && nodes_[node]->has_sentinels()) {
            connection.fail(Errc::connection_failed, connection.quoted(reply.text));
            return fail(node, connection.cause(), connection.detail());
        }
        if (answered == 1) nodes_[node]->succeeded();
        auto detail = vote.vote == Vote::unknown ? connection.quoted(reply.text) : std::string{};
        if (vote.vote == Vote::granted && reply.kind == detail::Reply::Kind::text) detail = reply.text;
        if (round_.on_vote(node, vote, std::move(detail), now_)) return check_in(node);
    }
}

/// Ends the part of the node because its connection has failed or cannot be trusted. A release is sent once
/// more over another connection.
void RoundDriver::fail(std::size_t node, std::error_code cause, const std::string& detail) {
    nodes_[node]->failed({cause, detail}, now_);
    const bool again = round_.on_failed(node, cause, detail, connections_[node]->broken(), now_);
    check_in(node);
    if (!again) return;
    if (check_out(node))
        proceed(node);
    else
        round_.end(node, cause, detail, now_);
}

/// Reports a node that was not asked, together with the failure after which it was left alone.
void RoundDriver::report_left_alone(std::size_t node) {
    const auto failure = nodes_[node]->last_failure();
    auto detail = "after: " + failure.cause.message();
    if (!failure.detail.empty()) detail += ", " + failure.detail;
    // If waiting cannot help, the original cause says more than `backing_off`.
    const auto cause = is_transient(failure.cause) ? make_error_code(Errc::backing_off) : failure.cause;
    round_.end(node, cause, detail, now_);
}

/// Gives the connection back to its node. A release whose reply has not arrived stays with the connection.
void RoundDriver::check_in(std::size_t node) {
    if (round_.is_release()) {
        connections_[node]->keep_release(round_.requests().front().command);
        has_left_release_unsent_ = has_left_release_unsent_ || connections_[node]->unsent();
    }
    nodes_[node]->check_in(std::move(connections_[node]), now_);
}

}  // namespace redlock
