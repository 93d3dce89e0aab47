#include "occupancy.hpp"

#include "redis/reply.hpp"
#include "span.hpp"

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

void find_foremost_owner(Occupancy& it, std::span<const KeyFacts> nodes) {
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

Occupancy::Kind kind_of(const Occupancy& it, std::size_t free) {
    const auto needed = quorum(it.nodes);
    const auto silent = it.nodes - it.answered;
    if (it.held_on >= needed) return Occupancy::Kind::held;
    if (it.answered < needed) return Occupancy::Kind::no_quorum;
    if (free >= needed) return Occupancy::Kind::free;
    const bool undecided = it.held_on + silent >= needed || free + silent >= needed;
    return undecided ? Occupancy::Kind::uncertain : Occupancy::Kind::split;
}

std::string of_nodes(std::size_t count, const Occupancy& occupancy) {
    return std::to_string(count) + " of " + std::to_string(occupancy.nodes) + " nodes";
}

std::string held_conclusion(const Occupancy& occupancy) {
    return "held by " + shown(occupancy.owner) + " on " + of_nodes(occupancy.held_on, occupancy) +
           ", expires in " + text_of(*occupancy.expires_in) +
           (is_ours(occupancy.owner) ? "" : ", no owner of this library");
}

std::string uncertain_conclusion(const Occupancy& occupancy) {
    std::string text = "uncertain: ";
    if (occupancy.held_on > 0)
        text += shown(occupancy.owner) + " on " + of_nodes(occupancy.held_on, occupancy) + ", and ";
    return text + of_nodes(occupancy.nodes - occupancy.answered, occupancy) + " did not answer";
}

std::string conclusion_of(const Occupancy& occupancy) {
    switch (occupancy.kind) {
        case Occupancy::Kind::held: return held_conclusion(occupancy);
        case Occupancy::Kind::free: return "free";
        case Occupancy::Kind::split: return "held by nobody: the votes are split";
        case Occupancy::Kind::uncertain: return uncertain_conclusion(occupancy);
        case Occupancy::Kind::no_quorum: break;
    }
    return "no quorum: " + of_nodes(occupancy.answered, occupancy) + " answered";
}

}  // namespace

Occupancy occupancy_of(std::span<const KeyFacts> nodes) {
    Occupancy it;
    it.nodes = nodes.size();
    it.answered = nodes.size() - count(nodes, KeyFacts::State::unknown);
    it.no_locks = count(nodes, KeyFacts::State::no_lock);
    find_foremost_owner(it, nodes);
    it.kind = kind_of(it, count(nodes, KeyFacts::State::free));
    if (it.kind == Occupancy::Kind::held) it.expires_in = expiry_of_majority(nodes, it.owner);
    return it;
}

bool is_ours(const std::string& owner) {
    return Owner::parse(owner).has_value();
}

std::string shown(const std::string& owner) {
    if (is_ours(owner)) return owner;
    constexpr std::size_t longest = 36;
    const auto text = wire::printable(owner.substr(0, longest));
    return '"' + text + (owner.size() > longest ? "\"..." : "\"");
}

std::string summary_of(const Occupancy& occupancy) {
    auto text = conclusion_of(occupancy);
    if (occupancy.no_locks > 0)
        text += "; on " + of_nodes(occupancy.no_locks, occupancy) +
                " the key is no lock: it refuses everybody until it is deleted";
    return text;
}

const char* name_of(Occupancy::Kind kind) noexcept {
    switch (kind) {
        case Occupancy::Kind::held: return "held";
        case Occupancy::Kind::free: return "free";
        case Occupancy::Kind::split: return "split";
        case Occupancy::Kind::uncertain: return "uncertain";
        case Occupancy::Kind::no_quorum: break;
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
