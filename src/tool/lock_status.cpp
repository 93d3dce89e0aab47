#include "lock_status.hpp"

#include "escaped.hpp"
#include "span.hpp"

#include <redlock/detail/scripts.hpp>
#include <redlock/entropy.hpp>

namespace redlock::tool {
namespace {

std::string of_nodes(std::size_t count, const LockStatus& status) {
    return std::to_string(count) + " of " + std::to_string(status.nodes.size()) + " nodes";
}

std::string held_conclusion(const LockStatus& status) {
    const auto ends =
        " on " + of_nodes(status.held_on, status) + ", expires in " + text_of(status.expires_in);
    if (status.owner.starts_with(detail::shared_marker))
        return "held by " + std::to_string(status.readers) + (status.readers == 1 ? " reader" : " readers") +
               ends;
    // The second name is that of earlier versions.
    if (status.owner == "redlock:min-hold" || status.owner == "redlock:rest")
        return "released, and kept from everybody" + ends;
    if (!is_ours(status.owner)) return "held by " + shown(status.owner) + ends + ", no owner of this library";
    return "held by " + shown(status.owner) + ends + (status.holder.empty() ? "" : ": ") +
           escaped(status.holder);
}

std::string uncertain_conclusion(const LockStatus& status) {
    std::string text = "uncertain: ";
    if (status.held_on > 0)
        text += shown(status.owner) + " on " + of_nodes(status.held_on, status) + ", and ";
    return text + of_nodes(status.nodes.size() - status.answered, status) + " did not answer";
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

bool is_ours(const std::string& owner) {
    return Owner::parse(owner).has_value();
}

std::string shown(const std::string& owner) {
    if (is_ours(owner)) return owner;
    constexpr std::size_t longest = 36;
    return '"' + escaped(owner.substr(0, longest)) + (owner.size() > longest ? "\"..." : "\"");
}

std::string summary_of(const LockStatus& status) {
    if (status.no_locks == 0) return conclusion_of(status);
    const bool decides = status.nodes.size() - status.no_locks < quorum(status.nodes.size());
    auto text = decides ? std::string{} : conclusion_of(status) + "; ";
    return text + "on " + of_nodes(status.no_locks, status) +
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

const char* name_of(NodeStatus::State state) noexcept {
    switch (state) {
        case NodeStatus::State::free: return "free";
        case NodeStatus::State::held: return "held";
        case NodeStatus::State::no_lock: return "no_lock";
        case NodeStatus::State::unknown: break;
    }
    return "unknown";
}

}  // namespace redlock::tool
