#include "round_trip.hpp"

#include <poll.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

namespace redlock {

RoundTrip::RoundTrip(std::span<const std::unique_ptr<Node>> nodes, Roster& roster, const Request& request,
                     const RoundLimits& limits, std::chrono::milliseconds node_timeout, Tally& tally)
    : nodes_(nodes),
      roster_(roster),
      command_(request.command),
      limits_(limits),
      node_timeout_(node_timeout),
      tally_(tally) {
    const auto now = boot_clock().now();
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        if (!request.to[node]) continue;
        exchanges_[node].stage = Exchange::Stage::unasked;
        const auto standing = nodes_[node]->look(now);
        exchanges_[node].trusted = standing == Standing::trusted;
        exchanges_[node].due = standing == Standing::due;
    }
}

/// What is still open was not waited for: it will be read when the node is next looked at.
RoundTrip::~RoundTrip() {
    try {
        for (std::size_t node = 0; node < nodes_.size(); ++node) {
            if (exchanges_[node].open()) end(node, Vote::unknown, Errc::not_awaited);
            if (exchanges_[node].stage == Exchange::Stage::left_alone) leave_alone(node);
        }
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a report less, a connection less
    }
}

void RoundTrip::one_after_the_other() {
    for (std::size_t node = 0; node < nodes_.size() && !over(); ++node) {
        if (!exchanges_[node].trusted) continue;
        begin(node, fair_share());
        wait_for(node);
        await(Awaited::trusted_nodes);
    }
    finish(Awaited::while_undecided);
}

void RoundTrip::all_at_once() {
    begin_trusted();
    finish(Awaited::while_undecided);
}

void RoundTrip::all_at_once_to_the_end() {
    begin_trusted();
    finish(Awaited::trusted_nodes);
}

// ---- Asking

void RoundTrip::begin_trusted() {
    for (std::size_t node = 0; node < nodes_.size() && !over(); ++node)
        if (exchanges_[node].trusted) begin(node, node_timeout_);
}

void RoundTrip::begin_suspected() {
    for (std::size_t node = 0; node < nodes_.size() && !over(); ++node)
        if (!exchanges_[node].trusted) begin(node, node_timeout_);
}

/// Where the caller's time does not suffice for every node's whole budget, each gets as much as the others:
/// one that hangs must not keep the rest from being asked.
Clock::duration RoundTrip::fair_share() const {
    const auto left = std::max(limits_.deadline - boot_clock().now(), Clock::duration::zero());
    return std::min<Clock::duration>(node_timeout_,
                                     left / static_cast<Clock::rep>(std::max<std::size_t>(unasked(), 1)));
}

void RoundTrip::begin(std::size_t node, Clock::duration budget) {
    auto& exchange = exchanges_[node];
    if (!exchange.unasked()) return;
    exchange.start = boot_clock().now();
    exchange.deadline = std::min({exchange.start + budget, limits_.deadline, end_});
    lend_to(node);
}

void RoundTrip::lend_to(std::size_t node) {
    auto& exchange = exchanges_[node];
    // Without this node, would there be enough that may still grant?
    const auto hoped_for = tally_.granted() + (half_over_ ? 0 : open());
    const bool needed = hoped_for < quorum(nodes_.size()) && !refused_to_acquire();
    auto loan = nodes_[node]->lend(command_, boot_clock().now(), needed);
    exchange.stage = loan.connection ? Exchange::Stage::preparing : Exchange::Stage::left_alone;
    exchange.trusted = loan.trusted;
    if (!loan.connection) return;
    exchange.connection = std::move(loan.connection);
    proceed(node);
}

void RoundTrip::leave_alone(std::size_t node) {
    const auto failure = nodes_[node]->last_failure();
    auto detail = "after: " + failure.cause.message();
    if (!failure.detail.empty()) detail += ", " + failure.detail;
    exchanges_[node].start = boot_clock().now();  // it took no time
    // What waiting does not cure is worth more in a report than that it is being waited for.
    const auto cause = is_transient(failure.cause) ? make_error_code(Errc::backing_off) : failure.cause;
    end(node, Vote::unknown, cause, std::move(detail));
}

void RoundTrip::proceed(std::size_t node) {
    using Stage = Exchange::Stage;
    auto& exchange = exchanges_[node];
    auto& connection = *exchange.connection;
    if (exchange.stage == Stage::sent || !connection.ready()) connection.advance();
    if (exchange.stage == Stage::preparing) connection.identify_for(command_);
    // A release may go behind the greeting: a node that does not answer will find it when it wakes up.
    const bool release = command_.verb == Verb::compare_and_delete;
    if (exchange.stage == Stage::preparing && (connection.ready() || (release && connection.greeting()))) {
        if (!release && is_a_twin(node)) return;
        exchange.stage = Stage::sent;
        tally_[node].sent = true;
        connection.send(command_);
    }
    look_for_answer(node);
}

/// Where who answers is known, and answers for another node already, it has no vote here.
bool RoundTrip::is_a_twin(std::size_t node) {
    const auto& run_id = exchanges_[node].connection->run_id();
    if (run_id.empty()) return false;
    const auto twin = roster_.twin_of(node, run_id);
    if (twin) fail(node, Errc::same_server, "as " + std::string{tally_[*twin].name});
    return twin.has_value();
}

void RoundTrip::look_for_answer(std::size_t node) {
    auto& exchange = exchanges_[node];
    const auto& connection = *exchange.connection;
    // A connection that broke in the same read is not to be trusted in its answer either.
    if (connection.broken()) return fail(node, connection.cause(), connection.detail());
    if (exchange.stage == Exchange::Stage::sent && connection.answer()) take_answer(node);
}

void RoundTrip::take_answer(std::size_t node) {
    auto& connection = *exchanges_[node].connection;
    const auto& reply = *connection.answer();
    if (connection.script_is_unknown()) {
        connection.send_whole(command_);
        return connection.broken() ? fail(node, connection.cause(), connection.detail()) : void();
    }
    const auto [vote, cause, count] = wire::judge(command_, reply, connection.scripted());
    if (cause == Errc::unexpected_reply) {
        connection.break_off(Errc::unexpected_reply, connection.quoted(reply.text));
        return fail(node, cause, connection.detail());
    }
    nodes_[node]->succeeded();
    tally_[node].count = count;
    end(node, vote, cause, vote == Vote::unknown ? connection.quoted(reply.text) : std::string{});
}

void RoundTrip::fail(std::size_t node, std::error_code cause, std::string detail) {
    auto& exchange = exchanges_[node];
    const auto now = boot_clock().now();
    nodes_[node]->failed({cause, detail}, now);
    const bool again = command_.verb == Verb::compare_and_delete && !exchange.repeated &&
                       exchange.connection->broken() && now < exchange.deadline;
    if (!again) return end(node, Vote::unknown, cause, std::move(detail));
    // To delete twice does no harm: the trouble may have been with that one connection.
    exchange.repeated = true;
    nodes_[node]->give_back(std::move(exchange.connection), now);
    lend_to(node);
    if (exchange.stage == Exchange::Stage::left_alone) end(node, Vote::unknown, cause, std::move(detail));
}

void RoundTrip::end(std::size_t node, Vote vote, std::error_code cause, std::string detail) {
    auto& exchange = exchanges_[node];
    auto& report = tally_[node];
    const auto now = boot_clock().now();
    report.vote = vote;
    report.cause = cause;
    report.took = now - exchange.start;
    report.detail = std::move(detail);
    exchange.stage = Exchange::Stage::over;
    if (exchange.connection) nodes_[node]->give_back(std::move(exchange.connection), now);
}

// ---- Waiting

/// The short way to an answer that comes at once, as it mostly does: what is read is this node's, and nobody
/// else's reply is missed meanwhile. Where it does not come, await() goes on by the clock, which is finer
/// than the ticks that this wait is counted in.
void RoundTrip::wait_for(std::size_t node) {
    using namespace std::chrono_literals;
    auto& exchange = exchanges_[node];
    if (exchange.stage != Exchange::Stage::sent || node_timeout_ < 40ms) return;
    // The connection waits for a share of the whole budget: only right after the start is that not too long.
    const auto whole_budget = exchange.deadline - node_timeout_ + node_timeout_ / 50;
    if (open() > 1 || boot_clock().now() >= whole_budget) return;
    exchange.connection->wait_for_more();
    look_for_answer(node);
}

/// All that are left, within one budget. A node that was left alone at first is asked after all when the vote
/// has come to hang on it: at half time, if those that are open have not answered by then, so that it has a
/// chance and the round ends in time.
void RoundTrip::finish(Awaited awaited) {
    const auto start = boot_clock().now();
    end_ = start + node_timeout_;
    begin_suspected();
    await(awaited, start + node_timeout_ / 2);
    half_over_ = true;
    begin_suspected();
    await(awaited);
}

void RoundTrip::await(Awaited awaited, Clock::time_point longest) {
    for (;;) {
        if (awaited == Awaited::while_undecided && decided()) shorten_the_wait_for_the_unsent();
        const auto until = next_deadline(awaited);
        const auto now = boot_clock().now();
        if (until == Clock::time_point::min() || now >= longest) return;
        poll_until(std::min(until, longest), now);
        give_up_the_late(awaited, now);
    }
}

/// When the votes have decided, a connection that is still being made gets an eighth of its budget in all.
void RoundTrip::shorten_the_wait_for_the_unsent() {
    for (auto& exchange : exchanges_)
        if (exchange.stage == Exchange::Stage::preparing)
            exchange.deadline = std::min(exchange.deadline, exchange.start + node_timeout_ / 8);
}

bool RoundTrip::awaits(const Exchange& exchange, Awaited awaited) const {
    if (!exchange.open()) return false;
    // A trusted node is sent its command even where its connection takes longer than the votes, if not much
    // longer: a lock on exactly a quorum survives no further node.
    const bool unsent = exchange.stage == Exchange::Stage::preparing;
    return (exchange.trusted && (unsent || awaited == Awaited::trusted_nodes)) || !decided();
}

/// When the next of those awaited runs out of time; the beginning of time if nobody is awaited any more.
Clock::time_point RoundTrip::next_deadline(Awaited awaited) const {
    auto next = Clock::time_point::min();
    for (const auto& exchange : exchanges())
        if (awaits(exchange, awaited))
            next = next == Clock::time_point::min() ? exchange.deadline : std::min(next, exchange.deadline);
    return next;
}

/// `now` was read before the last look at the sockets: who was late by then has had a last chance since.
void RoundTrip::give_up_the_late(Awaited awaited, Clock::time_point now) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        const auto& exchange = exchanges_[node];
        if (now < exchange.deadline || !awaits(exchange, awaited)) continue;
        if (exchange.deadline == limits_.deadline) {
            end(node, Vote::unknown, Errc::deadline);  // the caller's time is up, the node's was not
        } else {
            const bool sent = exchange.stage == Exchange::Stage::sent;
            fail(node, Errc::timed_out, sent ? std::string{} : std::string{"while connecting"});
        }
    }
}

void RoundTrip::poll_until(Clock::time_point until, Clock::time_point now) {
    std::array<pollfd, max_nodes> fds{};
    std::array<std::size_t, max_nodes> node_of{};
    nfds_t count = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        const auto& exchange = exchanges_[node];
        if (!exchange.open()) continue;
        fds[count] = {exchange.connection->fd(), exchange.connection->events(), 0};
        node_of[count++] = node;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
    const auto wait = std::clamp<std::chrono::milliseconds>(left, {}, std::chrono::hours{1});
    if (::poll(fds.data(), count, static_cast<int>(wait.count())) <= 0) return;
    for (nfds_t i = 0; i < count; ++i)
        if (fds[i].revents != 0) proceed(node_of[i]);
}

// ---- Counting

std::size_t RoundTrip::open() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(exchanges(), &Exchange::open));
}

std::size_t RoundTrip::unasked() const noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(exchanges(), [this](const Exchange& it) { return worth_asking(it); }));
}

bool RoundTrip::refused_to_acquire() const noexcept {
    return acquires(command_.verb) && tally_.refused() > 0;
}

/// Where somebody else holds the resource on some node, a suspected one is asked only if its probe is due:
/// to wait for it would keep from others what was granted elsewhere. Clients that collide would each hold a
/// part for a whole budget, and none of them ever all.
bool RoundTrip::worth_asking(const Exchange& exchange) const noexcept {
    return exchange.unasked() && (exchange.trusted || exchange.due || !refused_to_acquire());
}

bool RoundTrip::impossible() const noexcept {
    return tally_.granted() + open() + unasked() < quorum(nodes_.size());
}

bool RoundTrip::decided() const noexcept {
    return tally_.granted() >= quorum(nodes_.size()) || impossible();
}

/// No further node is to be asked. A release goes to every node, whatever the others have answered.
bool RoundTrip::over() const {
    if (command_.verb == Verb::compare_and_delete) return false;
    return impossible() || limits_.stop.stop_requested() || boot_clock().now() >= limits_.deadline;
}

}  // namespace redlock
