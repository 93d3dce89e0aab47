#include "batch_trip.hpp"

#include <algorithm>
#include <string>

namespace redlock::sim {

BatchTrip::BatchTrip(SimNodes& nodes, std::span<const Request> extensions, Clock::time_point deadline,
                     std::span<Tally> tallies)
    : nodes_(nodes),
      process_(nodes.process_),
      extensions_(extensions),
      deadline_(deadline),
      tallies_(tallies),
      counts_(extensions.size()),
      size_(nodes.size()) {
    for (std::size_t i = 0; i < extensions.size(); ++i) {
        letters_.push_back(std::make_shared<const Letter>(extensions[i].command, nodes.quarantine()));
        for (std::size_t node = 0; node < size_; ++node)
            if (extensions[i].to[node]) ++counts_[i].pending;
    }
    note();
}

void BatchTrip::note() const {
    process_.chronicle().note(process_.name(), [&] {
        std::string line = "watches and asks to extend";
        for (const auto& letter : letters_) line += " " + process_.chronicle().nickname(letter->owner());
        return line;
    });
}

/// What is still open was not waited for.
BatchTrip::~BatchTrip() {
    for (std::size_t node = 0; node < size_; ++node)
        if (exchanges_[node].open()) end(node, Errc::not_awaited);
    if (!process_.alive()) nodes_.abandon();
}

void BatchTrip::run() {
    if (process_.now() >= deadline_) return;
    for (std::size_t node = 0; node < size_; ++node)
        exchanges_[node].trusted = !nodes_.sites_[node].suspected;
    for (const bool trusted : {true, false})
        for (std::size_t node = 0; node < size_; ++node)
            if (exchanges_[node].trusted == trusted) begin(node);
    for (;;) {
        for (std::size_t node = 0; node < size_; ++node) proceed(node);
        if (all_decided()) shorten_the_wait_for_the_unsent();
        const auto until = next_deadline();
        if (until == Clock::time_point::min()) return;
        const auto now = process_.now();
        if (now >= until)
            give_up_the_late(now);
        else
            process_.wait_until(until);
    }
}

// ---- Asking

/// Not the extension of a lock whose SET is still under way there, which it would overtake.
void BatchTrip::choose(std::size_t node) {
    for (std::size_t i = 0; i < extensions_.size(); ++i) {
        if (!extensions_[i].to[node]) continue;
        const bool overtakes = std::ranges::any_of(
            nodes_.sites_[node].owing, [&](const auto& line) { return line->carries(letters_[i]->owner()); });
        if (overtakes)
            count(node, i, Vote::unknown, Errc::not_asked);
        else
            exchanges_[node].which.push_back(i);
    }
}

/// A node that failed a moment ago is asked when its time has come, or when the vote hangs on it.
void BatchTrip::begin(std::size_t node) {
    auto& exchange = exchanges_[node];
    auto& site = nodes_.sites_[node];
    const auto now = process_.now();
    exchange.start = now;
    exchange.deadline = deadline_ - now < nodes_.node_timeout() ? deadline_ : now + nodes_.node_timeout();
    choose(node);
    if (exchange.which.empty()) return;
    const auto open = static_cast<std::size_t>(std::ranges::count_if(exchanges_, &Exchange::open));
    if (site.suspected && now < site.next_probe && open >= quorum(size_)) return end(node, Errc::backing_off);
    nodes_.tidy(site);
    if (site.idle.empty()) {
        exchange.line = nodes_.connect(site);
    } else {
        exchange.line = std::move(site.idle.back());
        site.idle.pop_back();
    }
    exchange.line->listen(process_.current());
    exchange.stage = Stage::preparing;
    proceed(node);
}

void BatchTrip::proceed(std::size_t node) {
    auto& exchange = exchanges_[node];
    if (!exchange.open()) return;
    auto& line = *exchange.line;
    if (line.broken()) return fail(node, Errc::connection_failed);
    if (exchange.stage == Stage::preparing && line.ready()) {
        exchange.stage = Stage::sent;
        exchange.first = line.sent();
        for (const auto extension : exchange.which) {
            tallies_[extension][node].sent = true;
            nodes_.send(line, letters_[extension]);
        }
    }
    if (exchange.stage == Stage::sent) take_answers(node);
}

void BatchTrip::take_answers(std::size_t node) {
    auto& exchange = exchanges_[node];
    const auto answers = exchange.line->answers().subspan(exchange.first);
    if (exchange.answered == 0 && !answers.empty()) {
        nodes_.sites_[node].suspected = false;
        nodes_.sites_[node].failures = 0;
    }
    for (; exchange.answered < answers.size(); ++exchange.answered) {
        const auto& reply = answers[exchange.answered];
        count(node, exchange.which[exchange.answered], reply.vote, reply.cause);
    }
    if (exchange.answered == exchange.which.size()) end(node, Errc::not_asked);
}

void BatchTrip::fail(std::size_t node, Errc cause) {
    nodes_.failed(nodes_.sites_[node]);
    end(node, cause);
}

/// What the node has not answered it will not.
void BatchTrip::end(std::size_t node, Errc cause) {
    auto& exchange = exchanges_[node];
    exchange.stage = Stage::over;
    for (; exchange.answered < exchange.which.size(); ++exchange.answered)
        count(node, exchange.which[exchange.answered], Vote::unknown, cause);
    if (exchange.line) nodes_.give_back(nodes_.sites_[node], std::move(exchange.line));
}

// ---- Counting

void BatchTrip::count(std::size_t node, std::size_t extension, Vote vote, std::error_code cause) {
    auto& report = tallies_[extension][node];
    report.vote = vote;
    report.cause = cause;
    report.took = process_.now() - exchanges_[node].start;
    --counts_[extension].pending;
    if (vote == Vote::granted) ++counts_[extension].granted;
}

bool BatchTrip::decided(const Count& count) const {
    return count.granted >= quorum(size_) || count.granted + count.pending < quorum(size_);
}

bool BatchTrip::all_decided() const {
    return std::ranges::all_of(counts_, [this](const Count& count) { return decided(count); });
}

// ---- Waiting

/// A node that is still connecting is waited for a little in any case: what is not extended there is lost
/// there.
bool BatchTrip::awaits(const Exchange& exchange) const {
    return exchange.open() && (!all_decided() || (exchange.trusted && exchange.stage == Stage::preparing));
}

void BatchTrip::shorten_the_wait_for_the_unsent() {
    for (auto& exchange : exchanges_)
        if (exchange.stage == Stage::preparing)
            exchange.deadline = std::min(exchange.deadline, exchange.start + nodes_.node_timeout() / 8);
}

Clock::time_point BatchTrip::next_deadline() const {
    auto next = Clock::time_point::min();
    for (const auto& exchange : exchanges_)
        if (awaits(exchange))
            next = next == Clock::time_point::min() ? exchange.deadline : std::min(next, exchange.deadline);
    return next;
}

void BatchTrip::give_up_the_late(Clock::time_point now) {
    for (std::size_t node = 0; node < size_; ++node) {
        const auto& exchange = exchanges_[node];
        if (now < exchange.deadline || !awaits(exchange)) continue;
        if (exchange.deadline == deadline_)
            end(node, Errc::deadline);  // the caller's time is up, the node's was not
        else if (exchange.answered > 0)
            end(node, Errc::timed_out);
        else
            fail(node, Errc::timed_out);
    }
}

}  // namespace redlock::sim
