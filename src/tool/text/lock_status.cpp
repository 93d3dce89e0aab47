#include "lock_status.hpp"

#include "escaped.hpp"
#include "span.hpp"
#include "wire/scripts.hpp"

#include <redlock/entropy.hpp>

#include <array>
#include <cstddef>
#include <system_error>

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
    if (status.owner.starts_with("redlock:wake:")) return "reserved for a waiter" + ends;
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

std::string random_owner() {
    Owner random;
    if (const auto error = random.draw(os_entropy())) throw std::system_error(error, "no entropy");
    return std::string{random.view()};
}

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
}

std::string line_of_who(const LockStatus& status) {
    using Kind = LockStatus::Kind;
    auto text = summary_of(status);
    if (status.kind != Kind::no_quorum && status.kind != Kind::uncertain) return text;
    for (const auto& node : status.nodes)
        if (node.state == NodeStatus::State::unknown)
            text += "; " + node.name + " " + node.cause.message() +
                    (node.detail.empty() ? "" : " (" + node.detail + ")");
    return text;
}

// ---- The names stand in the order of the enumerators.

const char* name_of(LockStatus::Kind kind) noexcept {
    constexpr std::array names{"held", "free", "split", "uncertain", "no_quorum"};
    return names[static_cast<std::size_t>(kind)];
}

const char* name_of(NodeStatus::State state) noexcept {
    constexpr std::array names{"unknown", "free", "held", "no_lock"};
    return names[static_cast<std::size_t>(state)];
}

const char* name_of(Vote vote) noexcept {
    constexpr std::array names{"unknown", "granted", "refused"};
    return names[static_cast<std::size_t>(vote)];
}

}  // namespace redlock::tool
