#include <redlock/query.hpp>
#include <redlock/resources.hpp>

#include "../wire/reply.hpp"
#include "option_checks.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string_view>
#include <utility>

namespace redlock {
namespace {

using std::chrono::milliseconds;
using NodeState = NodeStatus::State;
using LockKind = LockStatus::Kind;

/// The next word of a line, as a number.
template <class Number>
bool take_number(std::string_view& line, Number& number) {
    const auto word = detail::cut_word(line);
    return std::from_chars(word.data(), word.data() + word.size(), number).ec == std::errc{};
}

/// The answer of the script `query`, see src/wire/lua/query.lua; false if it is none.
bool read(std::string_view text, NodeStatus& it) {
    auto line = detail::cut_word(text, '\n');
    const std::string type{detail::cut_word(line)};
    long long ttl = 0;
    std::size_t length = 0;
    const bool whole = take_number(line, ttl) && take_number(line, it.waiters) &&
                       take_number(line, it.readers) && take_number(line, it.fencing_count) &&
                       take_number(line, length);
    if (!whole || length > text.size()) return false;
    it.state = NodeState::free;
    if (type == "none") return true;
    it.state = type == "string" && ttl >= 0 ? NodeState::held : NodeState::no_lock;
    if (it.state == NodeState::no_lock) it.type = type == "string" ? "string without an expiry" : type;
    if (it.state == NodeState::no_lock) return true;
    it.owner = text.substr(0, length);
    it.expires_in = detail::to_expiry(ttl);
    const auto description = text.substr(length);
    if (description.starts_with(it.owner + ' ')) it.holder = description.substr(it.owner.size() + 1);
    return true;
}

std::size_t count(const std::vector<NodeStatus>& nodes, NodeState state) {
    return static_cast<std::size_t>(std::ranges::count(nodes, state, &NodeStatus::state));
}

void find_foremost_owner(LockStatus& it) {
    for (const auto& node : it.nodes) {
        if (node.state != NodeState::held) continue;
        const auto on = static_cast<std::size_t>(std::ranges::count_if(it.nodes, [&](const auto& other) {
            return other.state == NodeState::held && other.owner == node.owner;
        }));
        if (on > it.held_on) {
            it.owner = node.owner;
            it.held_on = on;
            it.holder = node.holder;
        } else if (node.owner == it.owner && it.holder.empty()) {
            it.holder = node.holder;
        }
    }
}

/// When fewer than a majority are left.
milliseconds expiry_of_majority(const LockStatus& it) {
    std::vector<milliseconds> expiries;
    for (const auto& node : it.nodes)
        if (node.state == NodeState::held && node.owner == it.owner) expiries.push_back(node.expires_in);
    std::ranges::sort(expiries, std::greater{});
    return expiries[quorum(it.nodes.size()) - 1];
}

LockKind kind_of(const LockStatus& it, std::size_t free) {
    const auto needed = quorum(it.nodes.size());
    const auto silent = it.nodes.size() - it.answered;
    if (it.held_on >= needed) return LockKind::held;
    if (it.answered < needed) return LockKind::no_quorum;
    if (free >= needed) return LockKind::free;
    const bool undecided = it.held_on + silent >= needed || free + silent >= needed;
    return undecided ? LockKind::uncertain : LockKind::split;
}

}  // namespace

NodeStatus detail::to_status(const NodeReport& report) {
    NodeStatus it{.name = std::string{report.name}, .took = report.took};
    if (report.vote == Vote::granted && read(report.detail, it)) return it;
    const bool declined = report.vote != Vote::unknown;
    return {.name = std::move(it.name),
            .cause = declined ? make_error_code(Errc::unexpected_reply) : report.cause,
            .detail = declined ? std::string{} : report.detail,
            .took = report.took};
}

LockStatus detail::conclude(std::vector<NodeStatus> nodes) {
    LockStatus it{.nodes = std::move(nodes)};
    it.answered = it.nodes.size() - count(it.nodes, NodeState::unknown);
    it.no_locks = count(it.nodes, NodeState::no_lock);
    find_foremost_owner(it);
    for (const auto& node : it.nodes) it.readers = std::max(it.readers, node.readers);
    it.kind = kind_of(it, count(it.nodes, NodeState::free));
    if (it.kind == LockKind::held) it.expires_in = expiry_of_majority(it);
    return it;
}

LockStatus query(Nodes& nodes, const std::string& resource) {
    const auto resources = detail::checked_resources({resource});
    detail::check_for_cluster(nodes, resources, {});
    const auto tally = nodes.ask({.command = {.verb = Verb::query, .resources = resources}});
    std::vector<NodeStatus> answers;
    for (const auto& report : tally.reports()) answers.push_back(detail::to_status(report));
    return detail::conclude(std::move(answers));
}

}  // namespace redlock
