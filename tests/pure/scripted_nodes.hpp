// N nodes in memory, each of which behaves as it is told: a very small Redis (resource → owner and expiry)
// behind a network that can be cut, silent, slow or lying. An acquire goes round one node after the other,
// the other commands go to all at once, as with RedisNodes.
#pragma once

#include "event_log.hpp"
#include "manual_clock.hpp"
#include "result_matchers.hpp"

#include <redlock/nodes.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {

/// One node's data.
class Keyspace {
public:
    /// Who has `resource` now; empty if nobody.
    std::string owner(const std::string& resource, Clock::time_point now) const {
        const auto entry = entries_.find(resource);
        return entry != entries_.end() && now < entry->second.expiry ? entry->second.owner : std::string{};
    }

    Clock::time_point expiry(const std::string& resource) const { return entries_.at(resource).expiry; }
    void set(const std::string& resource, std::string owner, Clock::time_point expiry) {
        entries_[resource] = {std::move(owner), expiry};
    }
    void erase(const std::string& resource) { entries_.erase(resource); }
    void clear() {
        entries_.clear();
        counts_.clear();
    }

    /// How many holders it has counted; nothing where it counts none.
    std::optional<std::uint64_t> count(const std::string& resource) const {
        const auto count = counts_.find(resource);
        return count == counts_.end() ? std::nullopt : std::optional{count->second};
    }
    void set_count(const std::string& resource, std::uint64_t count) { counts_[resource] = count; }

private:
    struct Entry {
        std::string owner;
        Clock::time_point expiry;
    };
    std::map<std::string, Entry> entries_;
    std::map<std::string, std::uint64_t> counts_;
};

class ScriptedNodes : public Nodes {
public:
    ScriptedNodes(std::size_t size, std::chrono::milliseconds node_timeout, ManualClock& clock, EventLog& log)
        : Nodes(names(size), node_timeout), clock_(&clock), log_(&log), nodes_(size) {}

    // ---- The words that make a situation. Each takes one node or several: world.cut(0, 3).

    /// Nothing can be sent; costs no time.
    template <class... Index>
    void cut(Index... index) {
        (become(index, Mood::cut, Errc::connection_failed), ...);
    }
    /// Left alone because it failed a moment ago: nothing is sent.
    template <class... Index>
    void back_off(Index... index) {
        (become(index, Mood::cut, Errc::backing_off), ...);
    }
    /// Takes commands, executes and answers none. Costs the budget.
    template <class... Index>
    void silence(Index... index) {
        (become(index, Mood::silent, Errc::timed_out), ...);
    }
    /// Executes every command, but its replies get lost. Costs the budget.
    template <class... Index>
    void lose_replies_of(Index... index) {
        (become(index, Mood::mute, Errc::timed_out), ...);
    }
    /// Executes nothing and answers with an error.
    template <class... Index>
    void lie(Errc cause, Index... index) {
        (become(index, Mood::lying, cause), ...);
    }
    /// Executes at once; its answers take `by`. Beyond the budget they come too late.
    void slow(std::size_t index, Clock::duration by) { at(index).delay = by; }
    /// Comes back from a crash without its data.
    template <class... Index>
    void forget(Index... index) {
        (at(index).keys.clear(), ...);
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
    /// Somebody else holds the resource there.
    template <class... Index>
    void occupy(Clock::duration ttl, Index... index) {
        (at(index).keys.set(the_resource, "somebody else", clock_->now() + ttl), ...);
    }
    /// It has counted so many holders.
    void count_on(std::size_t index, std::uint64_t count, const std::string& resource = the_resource) {
        at(index).keys.set_count(resource, count);
    }
    /// Late answers are waited for beyond the deadline of the round: a Nodes that breaks its contract.
    void overrun_deadlines() { honours_deadlines_ = false; }

    // ---- What one finds on the nodes.

    std::string owner_on(std::size_t index, const std::string& resource = the_resource) const {
        return at(index).keys.owner(resource, clock_->now());
    }
    Clock::duration ttl_on(std::size_t index, const std::string& resource = the_resource) const {
        return at(index).keys.expiry(resource) - clock_->now();
    }
    std::size_t held_by(std::string_view owner, const std::string& resource = the_resource) const {
        std::size_t count = 0;
        for (std::size_t index = 0; index < size(); ++index) count += owner_on(index, resource) == owner;
        return count;
    }
    std::uint64_t counted_on(std::size_t index, const std::string& resource = the_resource) const {
        return at(index).keys.count(resource).value_or(0);
    }
    /// No node holds a live key for the resource.
    bool clean() const { return held_by({}) == size(); }

    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        for (std::size_t i = 0; i < requests.size(); ++i) ask_one(requests[i], limits, tallies[i]);
    }
    using Nodes::ask;

private:
    enum class Mood { up, cut, silent, mute, lying };

    struct Node {
        Mood mood = Mood::up;
        std::error_code cause{};
        Clock::duration delay{};
        Keyspace keys{};
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

    /// In this world only the acquire under test can end itself: one that does not is a failure, not a hang.
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

    /// The answer of one node and the time it takes, before that time has passed.
    void send(std::size_t index, const Command& command, const RoundLimits& limits, Tally& tally) {
        auto& node = at(index);
        auto budget = Clock::duration{node_timeout()};
        if (honours_deadlines_) budget = std::min(budget, limits.deadline - clock_->now());
        auto& report = tally[index];
        switch (node.mood) {
            case Mood::cut: tally.mark_not_sent(index, node.cause); return;
            case Mood::lying: tally.mark_unknown(index, node.cause); return;
            case Mood::silent: break;
            case Mood::mute: execute(node, command); break;
            case Mood::up:
                const auto vote = execute(node, command);
                if (node.delay > budget) break;
                report.took = node.delay;
                return vote.granted ? tally.grant(index, vote.count) : tally.refuse(index, vote.count);
        }
        tally.mark_unknown(index, Errc::timed_out);
        report.took = budget;
    }

    /// Granted or refused, with a count.
    struct Vote {
        bool granted = false;
        std::uint64_t count = 0;
    };

    Vote execute(Node& node, const Command& command) {
        switch (command.verb) {
            case Verb::set_if_absent: return set(node, command);
            case Verb::compare_and_expire: return expire(node, command);
            case Verb::compare_and_delete: return erase(node, command);
            case Verb::set_and_count: return set_and_count(node, command);
            case Verb::raise_count: return raise_count(node, command);
            case Verb::enter_queue: break;
        }
        return {};
    }
    Vote set(Node& node, const Command& set) {
        if (!all_hold({}, node, set.resources)) return {};
        for (const auto& resource : set.resources)
            node.keys.set(resource, std::string{set.owner}, clock_->now() + set.ttl);
        return {true};
    }
    Vote set_and_count(Node& node, const Command& set) {
        if (!this->set(node, set).granted) return {};
        std::uint64_t count = 0;
        for (const auto& resource : set.resources)
            count = std::max(count, node.keys.count(resource).value_or(seed_ - 1) + 1);
        for (const auto& resource : set.resources) node.keys.set_count(resource, count);
        return {true, count};
    }
    Vote raise_count(Node& node, const Command& raise) {
        const auto counts = [&](const auto& resource) { return node.keys.count(resource).has_value(); };
        if (!all_hold(raise.owner, node, raise.resources)) return {};
        if (!std::ranges::all_of(raise.resources, counts)) return {};
        if (raise.fence > believed_) return {false, *node.keys.count(raise.resources.front())};
        for (const auto& resource : raise.resources)
            node.keys.set_count(resource, std::max(*node.keys.count(resource), raise.fence));
        return {true};
    }
    Vote expire(Node& node, const Command& expire) {
        if (!all_hold(expire.owner, node, expire.resources)) return {};
        for (const auto& resource : expire.resources)
            node.keys.set(resource, std::string{expire.owner},
                          std::max(node.keys.expiry(resource), clock_->now() + expire.ttl));
        return {true};
    }
    Vote erase(Node& node, const Command& order) {
        const bool all = all_hold(order.owner, node, order.resources);
        for (const auto& resource : order.resources)
            if (node.keys.owner(resource, clock_->now()) == order.owner) node.keys.erase(resource);
        return {all};
    }
    bool all_hold(std::string_view owner, const Node& node, Resources resources) const {
        return std::ranges::all_of(resources, [&](const auto& resource) {
            return node.keys.owner(resource, clock_->now()) == owner;
        });
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
            case Verb::compare_and_delete: return "delete " + owner;
            case Verb::set_and_count: return "set and count " + owner + " for " + ttl;
            case Verb::raise_count: return "raise " + owner + " to " + std::to_string(command.fence);
            case Verb::enter_queue: return "enter queue";
        }
        return {};
    }

    ManualClock* clock_;
    EventLog* log_;
    std::vector<Node> nodes_;
    bool honours_deadlines_ = true;
    std::uint64_t seed_ = 1;              // of a count that begins
    std::uint64_t believed_ = 1'000'000;  // the largest count that a node is raised to
    Clock::time_point last_asked_{};
    int rounds_ = 0;
    int rounds_now_ = 0;
};

}  // namespace redlock::test
