// Rounds that share connections, and the loop that makes them in one thread.
//
//     RoundLoop loop{group, clock};
//     SharedRound round{group, names, request};
//     loop.begin(round);
//     while (!round.over()) loop.turn([](std::span<PollEntry> entries, Clock::time_point until) { ... });
#pragma once

#include "redis/node_group.hpp"
#include "redis/round_driver.hpp"

#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace redlock::support {

/// A round of one request, with all that must outlive it.
class SharedRound final : public RoundDriver::Maker, detail::NotCopied {
public:
    SharedRound(NodeGroup& group, const Tally::Names& names, const Request& request, RoundLimits limits = {})
        : resource_{request.command.resources.front()},
          owner_(request.command.owner),
          request_(request),
          limits_(std::move(limits)),
          tally_(names) {
        request_.command.resources = resource_;
        request_.command.owner = owner_;
        round_.emplace(group, *this, std::span{&request_, 1}, limits_, std::span{&tally_, 1});
    }

    const Tally& tally() const { return tally_; }
    bool over() const { return over_; }

private:
    friend class RoundLoop;

    void wake() noexcept override { woken_ = true; }
    /// Advances the round. Returns until when it waits.
    Clock::time_point advance() {
        const auto until = over_ ? std::nullopt : round_->advance();
        until_ = until.value_or(Clock::never());
        if (until || std::exchange(over_, true)) return until_;
        round_->finish();
        return until_;
    }

    const std::vector<std::string> resource_;
    const std::string owner_;
    Request request_;
    const RoundLimits limits_;
    Tally tally_;
    std::optional<RoundDriver> round_{};
    bool woken_ = false;
    Clock::time_point until_{};
    bool over_ = false;
};

class RoundLoop {
public:
    RoundLoop(NodeGroup& group, Clock& clock) : group_(group), clock_(clock) {}

    void begin(SharedRound& round) {
        rounds_.push_back(&round);
        advance(round);
    }
    /// Must be called before a round is destroyed, unless a turn has ended since the round was over.
    void forget(SharedRound& round) { std::erase(rounds_, &round); }

    /// Continues with the rounds that can continue, writes, waits by calling `wait`, and reads. `latest` is
    /// the end of the wait at the latest.
    template <class Wait>
    void turn(Wait wait, Clock::time_point latest = Clock::never()) {
        for (auto* const round : rounds_)
            if (std::exchange(round->woken_, false)) advance(*round);
        if (next_ <= clock_.now()) advance_due();
        const bool has_ended = std::erase_if(rounds_, [](const auto* round) { return round->over(); }) > 0;
        const auto now = clock_.now();
        const auto until = std::min({group_.write_collected(now), next_, latest});
        entries_.clear();
        group_.append_poll_entries(entries_);
        wait(std::span{entries_}, has_ended ? now : until);
        group_.take_ready(entries_, clock_.now());
    }

private:
    void advance(SharedRound& round) { next_ = std::min(next_, round.advance()); }

    void advance_due() {
        const auto now = clock_.now();
        next_ = Clock::never();
        for (auto* const round : rounds_) {
            if (round->until_ <= now) {
                round->round_->read_clock();
                advance(*round);
            }
            next_ = std::min(next_, round->until_);
        }
    }

    NodeGroup& group_;
    Clock& clock_;
    std::vector<SharedRound*> rounds_{};
    std::vector<PollEntry> entries_{};
    Clock::time_point next_ = Clock::never();  // when a round must be advanced at the latest
};

}  // namespace redlock::support
