#include "recording.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace redlock::bench {
namespace {

using Span = Recording::Span;

/// The clock of the system. It records its readings.
class ListeningClock final : public Clock {
public:
    time_point now() noexcept override { return readings_.emplace_back(boot_clock().now()); }
    void sleep_until(time_point until, std::stop_token stop) override {
        boot_clock().sleep_until(until, std::move(stop));
    }

    /// Returns the last reading before an instant. Before a round, this is the start of its validity.
    time_point last_before(time_point instant) const {
        return *std::prev(std::ranges::upper_bound(readings_, instant));
    }
    time_point last() const { return readings_.back(); }

private:
    std::vector<time_point> readings_{};
};

/// Keeps the last round that acquired.
class ListeningObserver final : public Observer {
public:
    void round_ended(const Command& command, const Tally& tally, Span took) noexcept override {
        if (!acquires(command.verb)) return;
        tally_ = tally;
        took_ = took;
        ended_ = boot_clock().now();
    }

    const Tally& tally() const { return tally_; }
    Span took() const { return took_; }
    Clock::time_point start() const { return ended_ - took_; }

private:
    Tally tally_{};
    Span took_{};
    Clock::time_point ended_{};
};

/// A report says how long an exchange took, and not when it began. In sequential order each exchange begins
/// when the previous one ends, so together they take as long as the round.
void place_in_turn(const Tally& tally, Span start, Span took, Recording& recording) {
    auto next = start;
    for (const auto& report : tally.reports()) {
        recording.nodes.push_back(
            {report.vote, report.cause ? report.cause.message() : "", next, next + report.took});
        next += report.took;
    }
    recording.starts_within = start + took - next;
    if (recording.starts_within < Span::zero() || recording.starts_within > took / 20)
        throw std::runtime_error("the exchanges do not add up to the round");
}

/// With all_at_once the exchanges begin one right after the other. If a node was not awaited, its exchange
/// ended with the round, so its duration shows when it began.
void place_at_once(const Tally& tally, Span start, Span took, Recording& recording) {
    auto shortest = took;
    for (const auto& report : tally.reports()) {
        recording.nodes.push_back(
            {report.vote, report.cause ? report.cause.message() : "", start, start + report.took});
        if (report.cause == Errc::not_awaited) shortest = std::min(shortest, report.took);
    }
    recording.starts_within = took - shortest;
    if (recording.starts_within > took / 2) throw std::runtime_error("the nodes were not asked at once");
}

Span quorum_of(const std::vector<Recording::Exchange>& nodes) {
    std::vector<Span> grants;
    for (const auto& node : nodes)
        if (node.vote == Vote::granted) grants.push_back(node.end);
    std::ranges::sort(grants);
    return grants.at(quorum(nodes.size()) - 1);
}

}  // namespace

Recording record(const std::vector<std::string>& uris, Round round, const LockOptions& lock_options,
                 std::chrono::milliseconds node_timeout, const std::function<void()>& strike) {
    ListeningClock clock;
    ListeningObserver observer;
    RedisNodes nodes{uris, {.node_timeout = node_timeout, .round = round, .observer = &observer}};
    for (int warm_up = 0; warm_up < 3; ++warm_up) {
        Lock warm{nodes, "warm-up"};
        if (!warm.acquire() || !warm.release()) throw std::runtime_error("the nodes do not work");
    }
    strike();

    Lock lock{nodes, "orders:42", lock_options, clock};
    if (const auto result = lock.try_acquire(); !result) throw std::runtime_error(result.message());
    const auto remaining = lock.remaining();
    const auto start = clock.last_before(observer.start());
    const auto until_round = observer.start() - start;
    Recording recording{.round = round,
                        .round_ended = until_round + observer.took(),
                        .valid_until = clock.last() + remaining - start,
                        .ttl = lock_options.ttl};
    const auto place = round == Round::sequential ? place_in_turn : place_at_once;
    place(observer.tally(), until_round, observer.took(), recording);
    recording.quorum = quorum_of(recording.nodes);
    return recording;
}

}  // namespace redlock::bench
