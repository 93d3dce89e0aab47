#include "pipeline.hpp"

#include <poll.h>

#include <algorithm>
#include <new>
#include <utility>

namespace redlock {

Pipeline::Pipeline(std::span<const std::unique_ptr<Node>> nodes, Roster& roster,
                   std::span<const Request> extensions, Clock::time_point deadline,
                   std::chrono::milliseconds node_timeout, std::span<Tally> tallies)
    : nodes_(nodes),
      roster_(roster),
      extensions_(extensions),
      deadline_(deadline),
      node_timeout_(node_timeout),
      tallies_(tallies),
      counts_(extensions.size()) {
    for (std::size_t i = 0; i < extensions_.size(); ++i) {
        for (std::size_t node = 0; node < nodes_.size(); ++node)
            if (extensions_[i].to[node]) ++counts_[i].pending;
        if (!decided(counts_[i])) ++undecided_;
    }
}

/// What is still open was not waited for: it will be read when the node is next looked at.
Pipeline::~Pipeline() {
    try {
        for (std::size_t node = 0; node < nodes_.size(); ++node)
            if (exchanges_[node].open()) end(node, Errc::not_awaited, {});
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a report less, a connection less
    }
}

void Pipeline::run() {
    const auto now = boot_clock().now();
    if (now >= deadline_) return;
    std::vector<std::size_t> suspected;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        exchanges_[node].trusted = nodes_[node]->look(now) == Standing::trusted;
        if (exchanges_[node].trusted)
            begin(node);
        else
            suspected.push_back(node);
    }
    for (const auto node : suspected) begin(node);
    for (;;) {
        if (undecided_ == 0) shorten_the_wait_for_the_unsent();
        const auto until = next_deadline();
        if (until == Clock::time_point::min()) return;
        const auto before = boot_clock().now();
        poll_until(until, before);
        give_up_the_late(before);
    }
}

// ---- Asking

/// What goes to the node: not the extension of a lock whose SET is still under way there, which it would
/// overtake.
void Pipeline::choose(std::size_t node) {
    auto& exchange = exchanges_[node];
    const auto unreleased = nodes_[node]->unreleased();
    for (std::size_t i = 0; i < extensions_.size(); ++i) {
        const auto& [command, to] = extensions_[i];
        if (!to[node]) continue;
        if (std::ranges::find(unreleased, command.owner) != unreleased.end()) {
            count(node, i, Vote::unknown, Errc::not_asked, "its SET is still under way");
            continue;
        }
        exchange.which.push_back(i);
        exchange.commands.emplace_back(command);
    }
}

void Pipeline::begin(std::size_t node) {
    auto& exchange = exchanges_[node];
    exchange.start = boot_clock().now();
    exchange.deadline = std::min(exchange.start + node_timeout_, deadline_);
    choose(node);
    if (exchange.which.empty()) return;
    // Without this node, would there be enough that may still grant?
    const auto open = static_cast<std::size_t>(std::ranges::count_if(exchanges(), &Exchange::open));
    auto loan = nodes_[node]->lend_to_many(exchange.start, open < quorum(nodes_.size()));
    exchange.trusted = loan.trusted;
    if (!loan.connection) return leave_alone(node);
    exchange.connection = std::move(loan.connection);
    exchange.stage = Exchange::Stage::preparing;
    proceed(node);
}

void Pipeline::leave_alone(std::size_t node) {
    const auto failure = nodes_[node]->last_failure();
    auto detail = "after: " + failure.cause.message();
    if (!failure.detail.empty()) detail += ", " + failure.detail;
    end(node, is_transient(failure.cause) ? make_error_code(Errc::backing_off) : failure.cause, detail);
}

void Pipeline::proceed(std::size_t node) {
    using Stage = Exchange::Stage;
    auto& exchange = exchanges_[node];
    auto& connection = *exchange.connection;
    if (exchange.stage == Stage::sent || !connection.ready()) connection.advance();
    if (exchange.stage == Stage::preparing) connection.identify_for(exchange.commands.front());
    if (exchange.stage == Stage::preparing && connection.ready()) {
        if (is_a_twin(node)) return;
        exchange.stage = Stage::sent;
        for (const auto extension : exchange.which) tallies_[extension][node].sent = true;
        connection.send_all(exchange.commands);
    }
    // A connection that broke in the same read is not to be trusted in its answers either.
    if (connection.broken()) return fail(node, connection.cause(), connection.detail());
    if (exchange.stage == Stage::sent) take_answers(node);
}

/// Where who answers is known, and answers for another node already, it has no vote here.
bool Pipeline::is_a_twin(std::size_t node) {
    const auto& run_id = exchanges_[node].connection->run_id();
    if (run_id.empty()) return false;
    const auto twin = roster_.twin_of(node, run_id);
    if (twin) fail(node, Errc::same_server, "as " + std::string{tallies_.front()[*twin].name});
    return twin.has_value();
}

void Pipeline::take_answers(std::size_t node) {
    auto& exchange = exchanges_[node];
    auto& connection = *exchange.connection;
    const auto answers = connection.answers();
    if (exchange.answered == 0 && !answers.empty()) nodes_[node]->succeeded();
    for (; exchange.answered < answers.size(); ++exchange.answered) {
        const auto& reply = answers[exchange.answered];
        const auto [vote, cause, number] = wire::judge(exchange.commands[exchange.answered], reply, true);
        if (cause == Errc::unexpected_reply) {
            connection.break_off(Errc::unexpected_reply, connection.quoted(reply.text));
            return fail(node, cause, connection.detail());
        }
        auto detail = vote == Vote::unknown ? connection.quoted(reply.text) : std::string{};
        count(node, exchange.which[exchange.answered], vote, cause, std::move(detail));
    }
    if (exchange.answered == exchange.which.size()) end(node, {}, {});
}

void Pipeline::fail(std::size_t node, std::error_code cause, const std::string& detail) {
    nodes_[node]->failed({cause, detail}, boot_clock().now());
    end(node, cause, detail);
}

/// The part of the node is over: what it has not answered it will not.
void Pipeline::end(std::size_t node, std::error_code cause, const std::string& detail) {
    auto& exchange = exchanges_[node];
    exchange.stage = Exchange::Stage::over;
    for (; exchange.answered < exchange.which.size(); ++exchange.answered)
        count(node, exchange.which[exchange.answered], Vote::unknown, cause, detail);
    if (exchange.connection) nodes_[node]->give_back(std::move(exchange.connection), boot_clock().now());
}

// ---- Counting

void Pipeline::count(std::size_t node, std::size_t extension, Vote vote, std::error_code cause,
                     std::string detail) {
    auto& report = tallies_[extension][node];
    report.vote = vote;
    report.cause = cause;
    report.took = boot_clock().now() - exchanges_[node].start;
    report.detail = std::move(detail);

    auto& votes = counts_[extension];
    const bool before = decided(votes);
    --votes.pending;
    if (vote == Vote::granted) ++votes.granted;
    if (!before && decided(votes)) --undecided_;
}

bool Pipeline::decided(const Count& count) const noexcept {
    return count.granted >= quorum(nodes_.size()) || count.granted + count.pending < quorum(nodes_.size());
}

// ---- Waiting

/// A trusted node is sent its commands even where its connection takes longer than the votes, if not much
/// longer: what is not extended there is lost there.
bool Pipeline::awaits(const Exchange& exchange) const noexcept {
    return exchange.open() &&
           (undecided_ > 0 || (exchange.trusted && exchange.stage == Exchange::Stage::preparing));
}

void Pipeline::shorten_the_wait_for_the_unsent() {
    for (auto& exchange : exchanges())
        if (exchange.stage == Exchange::Stage::preparing)
            exchange.deadline = std::min(exchange.deadline, exchange.start + node_timeout_ / 8);
}

/// When the next of those awaited runs out of time; the beginning of time if nobody is awaited any more.
Clock::time_point Pipeline::next_deadline() const {
    auto next = Clock::time_point::min();
    for (const auto& exchange : exchanges())
        if (awaits(exchange))
            next = next == Clock::time_point::min() ? exchange.deadline : std::min(next, exchange.deadline);
    return next;
}

/// `now` was read before the last look at the sockets: who was late by then has had a last chance since.
void Pipeline::give_up_the_late(Clock::time_point now) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        const auto& exchange = exchanges_[node];
        if (now < exchange.deadline || !awaits(exchange)) continue;
        const bool sent = exchange.stage == Exchange::Stage::sent;
        if (exchange.deadline == deadline_)
            end(node, Errc::deadline, {});  // the caller's time is up, the node's was not
        else if (exchange.answered > 0)
            end(node, Errc::timed_out, "after it had answered others");
        else
            fail(node, Errc::timed_out, sent ? "" : "while connecting");
    }
}

void Pipeline::poll_until(Clock::time_point until, Clock::time_point now) {
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

}  // namespace redlock
