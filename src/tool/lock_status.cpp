#include "lock_status.hpp"

#include "span.hpp"

#include <redlock/detail/reply.hpp>
#include <redlock/entropy.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <functional>
#include <vector>

namespace redlock::tool {
namespace {

using std::chrono::milliseconds;

std::size_t count(std::span<const KeyFacts> nodes, KeyFacts::State state) {
    return static_cast<std::size_t>(std::ranges::count(nodes, state, &KeyFacts::state));
}

std::size_t held_by(std::span<const KeyFacts> nodes, const std::string& owner) {
    return static_cast<std::size_t>(std::ranges::count_if(
        nodes, [&](const KeyFacts& it) { return it.state == KeyFacts::State::held && it.owner == owner; }));
}

void find_foremost_owner(LockStatus& it, std::span<const KeyFacts> nodes) {
    for (const auto& node : nodes) {
        if (node.state != KeyFacts::State::held) continue;
        const auto on = held_by(nodes, node.owner);
        if (on <= it.held_on) continue;
        it.owner = node.owner;
        it.held_on = on;
    }
}

/// When fewer than a majority are left.
milliseconds expiry_of_majority(std::span<const KeyFacts> nodes, const std::string& owner) {
    std::vector<milliseconds> expiries;
    for (const auto& node : nodes)
        if (node.state == KeyFacts::State::held && node.owner == owner)
            expiries.push_back(node.expires_in.value_or(milliseconds::max()));
    std::ranges::sort(expiries, std::greater{});
    return expiries[quorum(nodes.size()) - 1];
}

LockStatus::Kind kind_of(const LockStatus& it, std::size_t free) {
    const auto needed = quorum(it.nodes);
    const auto silent = it.nodes - it.answered;
    if (it.held_on >= needed) return LockStatus::Kind::held;
    if (it.answered < needed) return LockStatus::Kind::no_quorum;
    if (free >= needed) return LockStatus::Kind::free;
    const bool undecided = it.held_on + silent >= needed || free + silent >= needed;
    return undecided ? LockStatus::Kind::uncertain : LockStatus::Kind::split;
}

std::string of_nodes(std::size_t count, const LockStatus& status) {
    return std::to_string(count) + " of " + std::to_string(status.nodes) + " nodes";
}

std::string held_conclusion(const LockStatus& status) {
    return "held by " + shown(status.owner) + " on " + of_nodes(status.held_on, status) + ", expires in " +
           text_of(*status.expires_in) + (is_ours(status.owner) ? "" : ", no owner of this library");
}

std::string uncertain_conclusion(const LockStatus& status) {
    std::string text = "uncertain: ";
    if (status.held_on > 0)
        text += shown(status.owner) + " on " + of_nodes(status.held_on, status) + ", and ";
    return text + of_nodes(status.nodes - status.answered, status) + " did not answer";
}

std::string conclusion_of(const LockStatus& status) {
    switch (status.kind) {
        case LockStatus::Kind::held: return held_conclusion(status);
        case LockStatus::Kind::free: return "free";
        case LockStatus::Kind::split: return "held by nobody: the votes are split";
        case LockStatus::Kind::uncertain: return uncertain_conclusion(status);
        case LockStatus::Kind::no_quorum: break;
    }
    return "no quorum: " + of_nodes(status.answered, status) + " answered";
}

}  // namespace

LockStatus lock_status_of(std::span<const KeyFacts> nodes) {
    LockStatus it;
    it.nodes = nodes.size();
    it.answered = nodes.size() - count(nodes, KeyFacts::State::unknown);
    it.no_locks = count(nodes, KeyFacts::State::no_lock);
    find_foremost_owner(it, nodes);
    it.kind = kind_of(it, count(nodes, KeyFacts::State::free));
    if (it.kind == LockStatus::Kind::held) it.expires_in = expiry_of_majority(nodes, it.owner);
    return it;
}

bool is_ours(const std::string& owner) {
    return Owner::parse(owner).has_value();
}

std::string shown(const std::string& owner) {
    if (is_ours(owner)) return owner;
    constexpr std::size_t longest = 36;
    const auto text = detail::printable(owner.substr(0, longest));
    return '"' + text + (owner.size() > longest ? "\"..." : "\"");
}

std::string summary_of(const LockStatus& status) {
    auto text = conclusion_of(status);
    if (status.no_locks > 0)
        text += "; on " + of_nodes(status.no_locks, status) +
                " the key is no lock: it refuses everybody until it is deleted";
    return text;
}

const char* name_of(LockStatus::Kind kind) noexcept {
    switch (kind) {
        case LockStatus::Kind::held: return "held";
        case LockStatus::Kind::free: return "free";
        case LockStatus::Kind::split: return "split";
        case LockStatus::Kind::uncertain: return "uncertain";
        case LockStatus::Kind::no_quorum: break;
    }
    return "no_quorum";
}

const char* name_of(KeyFacts::State state) noexcept {
    switch (state) {
        case KeyFacts::State::free: return "free";
        case KeyFacts::State::held: return "held";
        case KeyFacts::State::no_lock: return "no_lock";
        case KeyFacts::State::unknown: break;
    }
    return "unknown";
}

}  // namespace redlock::tool
