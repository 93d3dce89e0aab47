// N Redis servers in memory that execute the bytes which real servers receive. The network between can be
// cut, silent, slow or lying. As with RedisNodes, an acquire asks one node after the other, and other
// commands go to all nodes at once.
#pragma once

#include "event_log.hpp"
#include "manual_clock.hpp"
#include "result_matchers.hpp"
#include "support/command_reader.hpp"
#include "support/redis_model.hpp"

#include <redlock/nodes.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "wire/command_encoding.hpp"
#include "wire/reply.hpp"

namespace redlock::test {

class ScriptedNodes : public Nodes {
public:
    ScriptedNodes(std::size_t size, std::chrono::milliseconds node_timeout, ManualClock& clock, EventLog& log)
        : Nodes(names(size), node_timeout), clock_(&clock), log_(&log) {
        for (const auto& run_id : names(size)) nodes_.push_back({.redis = support::RedisModel{run_id}});
    }

    // ---- Functions that set up a situation. Each accepts one node or several: world.cut(0, 3).

    /// Nothing can be sent to the node. This costs no time.
    template <class... Index>
    void cut(Index... index) {
        (become(index, Mood::cut, Errc::connection_failed), ...);
    }
    /// The node is in back-off because it failed a moment ago. Nothing is sent to it.
    template <class... Index>
    void back_off(Index... index) {
        (become(index, Mood::cut, Errc::backing_off), ...);
    }
    /// The node accepts commands, and neither executes nor answers them. This costs a node_timeout.
    template <class... Index>
    void silence(Index... index) {
        (become(index, Mood::silent, Errc::timed_out), ...);
    }
    /// The node executes every command, but its replies are lost. This costs a node_timeout.
    template <class... Index>
    void lose_replies_of(Index... index) {
        (become(index, Mood::mute, Errc::timed_out), ...);
    }
    /// The node executes nothing and replies with an error.
    template <class... Index>
    void lie(Errc cause, Index... index) {
        (become(index, Mood::lying, cause), ...);
    }
    /// The node executes at once, and its replies take `by`. If that exceeds node_timeout, they come too
    /// late.
    void slow(std::size_t index, Clock::duration by) { at(index).delay = by; }
    /// The node restarts without its data after a crash.
    template <class... Index>
    void forget(Index... index) {
        (at(index).redis.restart(at(index).redis.run_id() + "'", {}), ...);
    }
    /// The resource is a key of another type on the node.
    template <class... Index>
    void replace_by_a_list(Index... index) {
        (command(index, {"DEL", the_resource}), ...);
        (command(index, {"RPUSH", the_resource, "x"}), ...);
    }
    template <class... Index>
    void heal(Index... index) {
        (recover(at(index)), ...);
    }
    void cut_all() {
        for (auto& node : nodes_) node.mood = Mood::cut, node.cause = Errc::connection_failed;
    }
    void heal_all() {
        for (auto& node : nodes_) recover(node);
    }
    /// Another client holds the resource on the node.
    template <class... Index>
    void occupy(milliseconds ttl, Index... index) {
        (command(index, {"SET", the_resource, "somebody else", "PX", std::to_string(ttl.count())}), ...);
    }
    /// Sets the counter of the node.
    void count_on(std::size_t index, std::uint64_t count) {
        command(index, {"SET", detail::key_of(detail::KeyKind::counter, the_resource).text(),
                        at(index).redis.data() + std::to_string(count)});
    }
    /// Sets the wall clock of the node back, relative to the others.
    void set_clock_back(std::size_t index, milliseconds by) { at(index).behind = by; }
    /// A round waits for late replies beyond its deadline, which violates the contract of Nodes.
    void overrun_deadlines() { honours_deadlines_ = false; }

    // ---- The state of the nodes.

    std::string owner_on(std::size_t index, const std::string& resource = the_resource) const {
        const auto* const value = at(index).redis.find(resource, wall(at(index)));
        return value ? value->text : "";
    }
    Clock::duration ttl_on(std::size_t index, const std::string& resource = the_resource) const {
        const auto* const value = at(index).redis.find(resource, wall(at(index)));
        return milliseconds{value ? value->expiry : 0} - wall(at(index));
    }
    std::size_t held_by(std::string_view owner, const std::string& resource = the_resource) const {
        std::size_t count = 0;
        for (std::size_t index = 0; index < size(); ++index) count += owner_on(index, resource) == owner;
        return count;
    }
    std::uint64_t counted_on(std::size_t index) const {
        const auto* const value = at(index).redis.find(
            detail::key_of(detail::KeyKind::counter, the_resource).text(), wall(at(index)));
        return value ? std::stoull(value->text.substr(value->text.rfind(':') + 1)) : 0;
    }
    /// Returns the seed with which the nodes would start counting now.
    std::uint64_t seed() const { return static_cast<std::uint64_t>(wall({}).count()); }
    template <class Index>
    std::string command(Index index, const std::vector<std::string>& words) {
        return text_of(at(index).redis.execute(words, wall(at(index))));
    }
    /// Returns true if no node holds a key for the resource.
    bool clean() const { return held_by({}) == size(); }

    /// Called at the beginning of each round. What it throws, the round throws.
    std::function<void(std::span<const Request>, const RoundLimits&)> before_round{};

    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        if (before_round) before_round(requests, limits);
        for (std::size_t i = 0; i < requests.size(); ++i) ask_one(requests[i], limits, tallies[i]);
    }
    using Nodes::ask;

private:
    enum class Mood { up, cut, silent, mute, lying };

    struct Node {
        Mood mood = Mood::up;
        std::error_code cause{};
        Clock::duration delay{};
        milliseconds behind{};
        support::RedisModel redis{""};
    };

    static std::vector<std::string> names(std::size_t size) {
        std::vector<std::string> result;
        for (std::size_t index = 0; index < size; ++index) result.push_back("node" + std::to_string(index));
        return result;
    }

    template <class Index>
    Node& at(Index index) {
        return nodes_.at(static_cast<std::size_t>(index));
    }
    const Node& at(std::size_t index) const { return nodes_.at(index); }

    template <class Index>
    void become(Index index, Mood mood, std::error_code cause) {
        at(index).mood = mood;
        at(index).cause = cause;
    }

    /// In this world only the acquire under test can end itself. If it does not, this makes it fail instead
    /// of hang.
    void refuse_to_go_on_for_ever() {
        rounds_now_ = std::exchange(last_asked_, clock_->now()) == clock_->now() ? rounds_now_ + 1 : 0;
        if (rounds_now_ > 1'000) throw std::runtime_error("1,000 rounds in one instant: this never ends");
        if (++rounds_ > 50'000) throw std::runtime_error("50,000 rounds: this never ends");
    }

    static void recover(Node& node) {
        node.mood = Mood::up;
        node.delay = {};
    }

    void ask_one(const Request& request, const RoundLimits& limits, Tally& tally) {
        refuse_to_go_on_for_ever();
        log_->note(text(request));
        if (acquires(request.command.verb))
            run_sequential(request, limits, tally);
        else
            run_all(request, limits, tally);
    }

    void run_sequential(const Request& request, const RoundLimits& limits, Tally& tally) {
        for (std::size_t index = 0; index < size(); ++index) {
            if (limits.stop.stop_requested() || clock_->now() >= limits.deadline) return;
            if (!request.to[index]) continue;
            send(index, request.command, limits, tally);
            clock_->advance(tally[index].took);
        }
    }

    void run_all(const Request& request, const RoundLimits& limits, Tally& tally) {
        Clock::duration longest{};
        for (std::size_t index = 0; index < size(); ++index) {
            if (!request.to[index]) continue;
            send(index, request.command, limits, tally);
            longest = std::max(longest, tally[index].took);
        }
        clock_->advance(longest);
    }

    /// Determines the reply of one node, and the time that it takes. That time has not passed yet.
    void send(std::size_t index, const Command& command, const RoundLimits& limits, Tally& tally) {
        auto& node = at(index);
        auto time_left = Clock::duration{node_timeout()};
        if (honours_deadlines_) time_left = std::min(time_left, limits.deadline - clock_->now());
        auto& report = tally[index];
        switch (node.mood) {
            case Mood::cut: tally.mark_not_sent(index, node.cause); return;
            case Mood::lying: tally.mark_unknown(index, node.cause); return;
            case Mood::silent: break;
            case Mood::mute: execute(node, command); break;
            case Mood::up:
                const auto answer = execute(node, command, &report.detail);
                if (node.delay > time_left) break;
                report.vote = answer.vote;
                report.cause = answer.cause;
                report.count = answer.count;
                report.place = answer.place;
                report.sent = true;
                report.took = node.delay;
                return;
        }
        tally.mark_unknown(index, Errc::timed_out);
        report.took = time_left;
    }

    /// Returns the wall clock of the node.
    support::RedisModel::Time wall(const Node& node) const {
        return std::chrono::duration_cast<support::RedisModel::Time>(clock_->now().time_since_epoch()) +
               1'760'000'000s - node.behind;
    }

    /// `text` receives the reply to a query.
    detail::NodeVote execute(Node& node, const Command& command, std::string* text = nullptr) const {
        const detail::Recipient recipient{};
        std::string bytes;
        append(bytes, command, recipient, detail::ScriptForm::whole);
        detail::NodeVote vote{};
        support::CommandReader reader{std::numeric_limits<std::size_t>::max()};
        reader.take(bytes, [&](const auto& words) {
            const bool scripted = script_of(command, recipient) != nullptr;
            const auto reply = as_read(node.redis.execute(words, wall(node)));
            vote = to_vote(command, reply, scripted);
            if (text && detail::properties_of(command.verb).reply == detail::ReplyForm::text)
                *text = reply.text;
        });
        return vote;
    }

    static detail::Reply as_read(support::RedisReply reply) {
        using Kind = detail::Reply::Kind;
        constexpr std::array kinds{Kind::nil,     Kind::status, Kind::error,
                                   Kind::integer, Kind::text,   Kind::list};
        return {.kind = kinds.at(static_cast<std::size_t>(reply.kind)),
                .integer = reply.integer,
                .text = std::move(reply.text)};
    }

    std::string text(const Request& request) {
        auto result = text(request.command);
        std::string some;
        for (std::size_t index = 0; index < size(); ++index)
            if (request.to[index]) some += " " + std::to_string(index);
        return some.size() == 2 * size() ? result : result + " on" + some;
    }
    std::string text(const Command& command) {
        const auto owner = log_->short_name(command.owner);
        const auto ttl = std::to_string(command.ttl.count()) + " ms";
        switch (command.verb) {
            case Verb::set_if_absent: return "set " + owner + " for " + ttl;
            case Verb::compare_and_expire: return "expire " + owner + " in " + ttl;
            case Verb::compare_and_delete:
                return command.hold_remaining > 0ms
                           ? "keep " + owner + " for " + test::text(Clock::duration{command.hold_remaining})
                           : "delete " + owner;
            case Verb::set_and_count: return "set and count " + owner + " for " + ttl;
            case Verb::raise_count: return "raise " + owner + " to " + std::to_string(command.fence);
            case Verb::describe_holder: return "note " + owner;
            case Verb::query:
            case Verb::exist: return "query";
            default: return "command " + std::to_string(static_cast<int>(command.verb));
        }
    }

    ManualClock* clock_;
    EventLog* log_;
    std::vector<Node> nodes_;
    bool honours_deadlines_ = true;
    Clock::time_point last_asked_{};
    int rounds_ = 0;
    int rounds_now_ = 0;
};

}  // namespace redlock::test
