#include "round_trip.hpp"

#include <algorithm>

namespace redlock::sim {

RoundTrip::RoundTrip(SimNodes& nodes, const Request& request, const RoundLimits& limits, Tally& tally)
    : nodes_(nodes),
      process_(nodes.process_),
      limits_(limits),
      tally_(tally),
      letter_(std::make_shared<const Letter>(request.command, nodes.quarantine())),
      size_(nodes.size()) {
    for (std::size_t node = 0; node < size_; ++node)
        if (request.to[node]) exchanges_[node].stage = Stage::unasked;
    process_.chronicle().note(process_.name(), [&] {
        std::string to;
        for (std::size_t node = 0; node < size_; ++node)
            if (request.to[node]) to += " " + std::to_string(node);
        return "asks to " + verb_of(request.command) + " " + process_.chronicle().nickname(letter_->owner()) +
               " on" + to;
    });
}

/// What is still open was not waited for.
RoundTrip::~RoundTrip() {
    for (std::size_t node = 0; node < size_; ++node) {
        if (!exchanges_[node].open()) continue;
        tally_[node].cause = Errc::not_awaited;
        end(node);
        if (!process_.alive()) nodes_.abandon();
    }
}

void RoundTrip::run() {
    if (letter_->claims() && nodes_.options_.round == Round::sequential)
        one_after_the_other();
    else
        begin_all(false);
    begin_all(true);
    await();
    begin_all(true);
    await();
}

void RoundTrip::one_after_the_other() {
    for (std::size_t node = 0; node < size_ && !over(); ++node) {
        if (nodes_.sites_[node].suspected) continue;
        begin(node, fair_share());
        while (exchanges_[node].open()) {
            const auto now = process_.now();
            if (now >= exchanges_[node].deadline) {
                give_up_the_late(now);
                break;
            }
            process_.wait_until(exchanges_[node].deadline);
            for (std::size_t other = 0; other < size_; ++other) proceed(other);
        }
    }
}

void RoundTrip::begin_all(bool suspected) {
    for (std::size_t node = 0; node < size_ && !over(); ++node)
        if (nodes_.sites_[node].suspected == suspected) begin(node, nodes_.node_timeout());
}

/// Where the caller's time does not suffice for every node's whole budget, each gets as much as the others.
nanoseconds RoundTrip::fair_share() const {
    const auto left = std::max<nanoseconds>(limits_.deadline - process_.now(), 0ns);
    const auto unasked = static_cast<nanoseconds::rep>(std::max<std::size_t>(count(Stage::unasked), 1));
    return std::min<nanoseconds>(nodes_.node_timeout(), left / unasked);
}

/// A node that failed a moment ago is asked when its time has come, by a release, or when the vote hangs on
/// it.
void RoundTrip::begin(std::size_t node, nanoseconds budget) {
    auto& exchange = exchanges_[node];
    auto& site = nodes_.sites_[node];
    if (exchange.stage != Stage::unasked) return;
    const auto now = process_.now();
    const bool needed = tally_.granted() + open() < quorum(size_) && tally_.refused() == 0;
    if (site.suspected && now < site.next_probe && !needed && !letter_->erases()) {
        tally_.mark_not_sent(node, Errc::backing_off);
        return;
    }
    exchange.start = now;
    exchange.deadline = limits_.deadline - now < budget ? limits_.deadline : now + budget;
    take_line(node);
}

void RoundTrip::take_line(std::size_t node) {
    auto& exchange = exchanges_[node];
    exchange.line = nodes_.line_for(nodes_.sites_[node], *letter_);
    exchange.line->listen(process_.current());
    exchange.stage = Stage::preparing;
    proceed(node);
}

void RoundTrip::proceed(std::size_t node) {
    auto& exchange = exchanges_[node];
    if (!exchange.open()) return;
    auto& line = *exchange.line;
    if (line.broken()) return fail(node, Errc::connection_failed);
    // A release may go behind the greeting: it arrives when the node wakes up.
    if (exchange.stage == Stage::preparing && (line.ready() || letter_->erases())) {
        exchange.stage = Stage::sent;
        tally_[node].sent = true;
        nodes_.send(line, letter_);
    }
    const auto* const answer = exchange.stage == Stage::sent ? line.answer() : nullptr;
    if (!answer) return;
    nodes_.sites_[node].suspected = false;
    nodes_.sites_[node].failures = 0;
    tally_[node].vote = answer->vote;
    tally_[node].cause = answer->cause;
    tally_[node].count = answer->count;
    end(node);
}

void RoundTrip::fail(std::size_t node, Errc cause) {
    auto& exchange = exchanges_[node];
    nodes_.failed(nodes_.sites_[node]);
    const bool again = letter_->erases() && !exchange.repeated && exchange.line->broken() &&
                       process_.now() < exchange.deadline;
    tally_[node].cause = cause;
    end(node);
    if (!again) return;
    // To delete twice does no harm: the trouble may have been with that one connection.
    exchange.repeated = true;
    take_line(node);
}

void RoundTrip::end(std::size_t node) {
    auto& exchange = exchanges_[node];
    exchange.stage = Stage::over;
    tally_[node].took = process_.now() - exchange.start;
    nodes_.give_back(nodes_.sites_[node], std::move(exchange.line));
}

// ---- Waiting

void RoundTrip::await() {
    for (;;) {
        for (std::size_t node = 0; node < size_; ++node) proceed(node);
        const auto until = next_deadline();
        if (until == Clock::time_point::min()) return;
        const auto now = process_.now();
        if (now >= until)
            give_up_the_late(now);
        else
            process_.wait_until(until);
    }
}

/// A release waits for all; a node that is still connecting is waited for a little in any case, so that it
/// is sent its command: a lock on exactly a quorum survives no further node.
bool RoundTrip::awaited(const Exchange& exchange) const {
    return exchange.open() && (letter_->erases() || !decided() || exchange.stage == Stage::preparing);
}

Clock::time_point RoundTrip::next_deadline() const {
    auto next = Clock::time_point::min();
    for (const auto& exchange : exchanges_) {
        if (!awaited(exchange)) continue;
        const auto shorter = decided() && exchange.stage == Stage::preparing && !letter_->erases();
        const auto until = exchange.deadline - (shorter ? nodes_.node_timeout() * 7 / 8 : 0ms);
        next = next == Clock::time_point::min() ? until : std::min(next, until);
    }
    return next;
}

void RoundTrip::give_up_the_late(Clock::time_point now) {
    for (std::size_t node = 0; node < size_; ++node) {
        auto& exchange = exchanges_[node];
        if (!awaited(exchange)) continue;
        if (now >= exchange.deadline && exchange.deadline == limits_.deadline) {
            tally_[node].cause = Errc::deadline;
            end(node);
        } else if (now >= exchange.deadline) {
            fail(node, Errc::timed_out);
        } else if (decided() && exchange.stage == Stage::preparing && !letter_->erases() &&
                   now >= exchange.deadline - nodes_.node_timeout() * 7 / 8) {
            tally_[node].cause = Errc::not_asked;
            end(node);
        }
    }
}

// ---- Counting

std::size_t RoundTrip::count(Stage stage) const {
    return static_cast<std::size_t>(std::ranges::count(exchanges_, stage, &Exchange::stage));
}

std::size_t RoundTrip::open() const {
    return count(Stage::preparing) + count(Stage::sent);
}

bool RoundTrip::decided() const {
    return tally_.granted() >= quorum(size_) ||
           tally_.granted() + open() + count(Stage::unasked) < quorum(size_);
}

/// No further node is to be asked. A release goes to every node, whatever the others have answered.
bool RoundTrip::over() const {
    if (letter_->erases()) return false;
    const bool impossible = tally_.granted() + open() + count(Stage::unasked) < quorum(size_);
    return impossible || limits_.stop.stop_requested() || process_.now() >= limits_.deadline;
}

}  // namespace redlock::sim
