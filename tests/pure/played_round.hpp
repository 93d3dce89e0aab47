// A QuorumRound whose nodes behave as programmed, in virtual time. Times are milliseconds since the round
// began.
//
//     PlayedRound round{{.nodes = 3}};
//     round.node(1).answers_after(30ms).votes = "r";  // refuses
//     round.node(2).connects = never;
//     round.log();      // "0 ask 0", "1 ask 1", "31 ask 2", "81 give up 2"
//     round.report(1);  // "refused sent 30 ms"
#pragma once

#include "support/matchers.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "round/quorum_round.hpp"

namespace redlock::test {

class PlayedRound {
public:
    static constexpr auto never = 1h;

    struct Settings {
        std::size_t nodes = 3;
        Verb verb = Verb::set_if_absent;
        Round order = Round::sequential;
        std::chrono::milliseconds deadline = never;
        std::size_t requests = 1;
        std::chrono::milliseconds node_timeout = 50ms;
        bool awaits_answers = true;
    };

    /// The behaviour of a node. `votes` has one letter for the reply to each request: g(ranted), r(efused),
    /// w(rong type, which refuses), u(nknown), or e for an error reply that counts as unknown. The last
    /// letter applies to all further requests.
    struct Behavior {
        bool trusted = true;
        bool probe_due = false;
        bool probe_taken = false;                  ///< by another round, before this one asks
        std::chrono::milliseconds connects = 0ms;  ///< after the node was asked
        std::chrono::milliseconds answers = 1ms;   ///< after the commands were sent
        std::size_t answers_at_most = 1'000'000;
        std::chrono::milliseconds breaks = never;  ///< after the node was asked; applies to each connection
        std::size_t breaks_times = 1;
        bool disconnects = true;  ///< when the connection breaks
        std::string votes = "g";
        std::vector<std::size_t> excludes{};

        Behavior& untrusted(bool due = false) {
            trusted = false;
            probe_due = due;
            return *this;
        }
        Behavior& connects_after(std::chrono::milliseconds span) { return connects = span, *this; }
        Behavior& answers_after(std::chrono::milliseconds span) { return answers = span, *this; }
        Behavior& breaks_after(std::chrono::milliseconds span) { return breaks = span, *this; }
        Behavior& silent() { return answers_after(never); }
        Behavior& voting(std::string text) { return votes = std::move(text), *this; }
    };

    explicit PlayedRound(Settings settings) : settings_(settings), behaviors_(settings.nodes) {
        std::vector<std::string> names;
        for (std::size_t node = 0; node < settings.nodes; ++node) names.push_back(std::to_string(node));
        const auto shared = std::make_shared<const std::vector<std::string>>(names);
        for (std::size_t i = 0; i < settings.requests; ++i) {
            owners_.push_back("owner-" + std::to_string(i));
            requests_.push_back({.command = {.verb = settings.verb, .owner = owners_.back()}});
            tallies_.emplace_back(shared);
        }
    }

    Behavior& node(std::size_t index) { return behaviors_[index]; }
    Request& request(std::size_t index) { return requests_[index]; }
    void stop_at(std::chrono::milliseconds instant) {
        events_.emplace(at(instant), [this] { stop_.request_stop(); });
    }
    /// Makes the wait that begins before `instant` last at least until then.
    void stall_until(std::chrono::milliseconds instant) { stalled_ = at(instant); }
    /// The same, but the process stalls after the wait, so that it does not see what arrived meanwhile.
    void stall_after_wait_until(std::chrono::milliseconds instant) { unseen_ = at(instant); }

    // ---- What has happened. The first of these calls plays the round.

    /// Returns the steps, each with its time.
    const std::vector<std::string>& log() { return play(), log_; }
    /// Returns when the round ended.
    std::chrono::milliseconds ended() { return play(), since_start(ended_); }
    /// Returns the nodes that are blamed for a timeout.
    const std::vector<std::size_t>& blamed() { return play(), blamed_; }
    const NodeReport& raw_report(std::size_t node, std::size_t request = 0) {
        return play(), tallies_[request][node];
    }

    /// Returns a text such as "granted sent 5 ms" or "timed_out unsent 50 ms while connecting".
    std::string report(std::size_t node, std::size_t request = 0) {
        const auto& it = raw_report(node, request);
        auto words = it.vote == Vote::granted   ? "granted"
                     : it.vote == Vote::refused ? "refused"
                                                : name(it.cause);
        words += it.sent ? " sent " : " unsent ";
        words +=
            std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(it.took).count()) + " ms";
        if (it.count > 0) words += " count " + std::to_string(it.count);
        if (!it.detail.empty()) words += " " + it.detail;
        return words;
    }

private:
    using Kind = detail::QuorumRound::Step::Kind;

    static Clock::time_point at(std::chrono::milliseconds span) { return Clock::time_point{1h} + span; }
    static std::chrono::milliseconds since_start(Clock::time_point instant) {
        return std::chrono::duration_cast<std::chrono::milliseconds>(instant - at(0ms));
    }
    void note(const std::string& words) {
        log_.push_back(std::to_string(since_start(now_).count()) + " " + words);
    }
    static std::string name(std::error_code cause) {
        static const std::map<Errc, std::string> names{
            {Errc::timed_out, "timed_out"},     {Errc::connection_failed, "connection_failed"},
            {Errc::deadline, "deadline"},       {Errc::loading, "loading"},
            {Errc::not_asked, "not_asked"},     {Errc::not_awaited, "not_awaited"},
            {Errc::backing_off, "backing_off"}, {Errc::unexpected_reply, "unexpected_reply"}};
        return names.at(static_cast<Errc>(cause.value()));
    }

    void play() {
        if (std::exchange(played_, true)) return;
        const RoundLimits limits{
            .deadline = settings_.deadline == never ? Clock::never() : at(settings_.deadline),
            .stop = stop_.get_token(),
            .awaits_answers = settings_.awaits_answers};
        detail::QuorumRound round{requests_,       limits,          settings_.node_timeout,
                                  settings_.order, settings_.nodes, tallies_};
        round_ = &round;
        for (std::size_t node = 0; node < settings_.nodes; ++node)
            round.set_health(node, behaviors_[node].trusted, behaviors_[node].probe_due);
        for (int steps = 0; one_step(); ++steps)
            if (steps > 10'000) return note("and so on");
        ended_ = now_;
        for (std::size_t node = 0; node < settings_.nodes; ++node) {
            if (round.is_being_asked(node)) round.end(node, Errc::not_awaited, {}, now_);
            if (round.is_left_alone(node)) round.end(node, Errc::backing_off, {}, now_);
        }
        round_ = nullptr;
    }

    bool one_step() {
        const auto step = round_->next(now_);
        const auto text = std::to_string(step.node);
        if (step.kind == Kind::ask) {
            ask(step.node);
        } else if (step.kind == Kind::give_up) {
            note("give up " + text);
            round_->end(step.node, step.cause, step.detail, now_);
            if (step.timed_out) blamed_.push_back(step.node);
            ++generation_[step.node];
        } else if (step.kind == Kind::wait) {
            wait(step.until);
        }
        return step.kind != Kind::done;
    }

    void ask(std::size_t node) {
        auto& it = behaviors_[node];
        for (const auto request : it.excludes)
            if (round_->includes(node, request) && !round_->exclude(node, request, "excluded", now_)) return;
        const bool due = it.probe_due && !it.probe_taken;
        if (!it.trusted && !due && !round_->needs(node) && !round_->is_release()) {
            note("leave alone " + std::to_string(node));
            return round_->on_postponed(node);
        }
        note("ask " + std::to_string(node));
        join(node);
    }

    void join(std::size_t node) {
        const auto& it = behaviors_[node];
        round_->on_join(node, it.trusted);
        after(node, it.connects, [this, node] { send(node); });
        if (broken_[node] < it.breaks_times) after(node, it.breaks, [this, node] { fail(node); });
    }

    void send(std::size_t node) {
        round_->on_sent(node);
        const auto& it = behaviors_[node];
        for (std::size_t i = 0, sent = 0; i < requests_.size(); ++i) {
            if (!round_->includes(node, i) || sent >= it.answers_at_most) continue;
            after(node, it.answers * static_cast<int>(++sent), [this, node, i] { answer(node, i); });
        }
    }

    void answer(std::size_t node, std::size_t request) {
        const auto& votes = behaviors_[node].votes;
        const char letter = votes[std::min(request, votes.size() - 1)];
        if (round_->command_of_next_reply(node).owner != owners_[request])
            note("an answer to another request");
        detail::NodeVote vote{};
        if (letter == 'g') vote = {Vote::granted};
        if (letter == 'r') vote = {Vote::refused};
        if (letter == 'w') vote = {Vote::refused, Errc::wrong_type};
        if (letter == 'c') vote = {Vote::granted, {}, 7};
        if (letter == 'u') vote = {Vote::unknown, Errc::loading};
        const auto* const detail = letter == 'u' ? "LOADING" : letter == 'w' ? "WRONGTYPE" : "";
        if (round_->on_vote(node, vote, detail, now_)) ++generation_[node];
    }

    void fail(std::size_t node) {
        ++generation_[node];
        ++broken_[node];
        if (!round_->on_failed(node, Errc::connection_failed, "reset", behaviors_[node].disconnects, now_))
            return;
        note("repeat " + std::to_string(node));
        join(node);
    }

    /// Schedules `event`, unless the node's part in the round or this connection ends before.
    void after(std::size_t node, std::chrono::milliseconds span, std::function<void()> event) {
        if (span >= never) return;
        if (span == 0ms) return event();
        events_.emplace(now_ + span, [this, node, mine = generation_[node], event = std::move(event)] {
            if (generation_[node] == mine) event();
        });
    }

    void wait(Clock::time_point until) {
        if (now_ < unseen_) {
            now_ = unseen_;
            return;
        }
        auto end = events_.empty() ? until : std::min(until, events_.begin()->first);
        end = std::max(now_, end);
        if (now_ < stalled_) end = std::max(end, stalled_);
        now_ = end;
        while (!events_.empty() && events_.begin()->first <= now_)
            events_.extract(events_.begin()).mapped()();
    }

    const Settings settings_;
    std::vector<Behavior> behaviors_;
    std::deque<std::string> owners_;
    std::vector<Request> requests_;
    std::vector<Tally> tallies_;
    std::stop_source stop_;
    detail::QuorumRound* round_ = nullptr;
    Clock::time_point now_ = at(0ms);
    Clock::time_point ended_{};
    Clock::time_point stalled_{};
    Clock::time_point unseen_{};
    std::multimap<Clock::time_point, std::function<void()>> events_;
    std::array<int, max_nodes> generation_{};  // of its connection
    std::array<std::size_t, max_nodes> broken_{};
    std::vector<std::size_t> blamed_;
    std::vector<std::string> log_;
    bool played_ = false;
};

}  // namespace redlock::test
