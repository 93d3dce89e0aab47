#include "checker.hpp"

#include "checked_lock.hpp"

#include <algorithm>
#include <array>

namespace redlock::sim {

std::string_view name_of(Rule rule) noexcept {
    constexpr std::array<std::string_view, 15> names{
        "two holders",
        "a token that does not grow",
        "a validity that is too long",
        "a validity that moved",
        "a lapsed lock that came back",
        "a confirmation that came too late",
        "a key that was left",
        "a deadlock",
        "a loss that was not reported",
        "a loss that was reported twice",
        "a loss reported of a lock that is valid",
        "a lock that outlived its release",
        "a hold without a limit",
        "a command that overtakes its SET",
        "a wait that was too long",
    };
    return names[static_cast<std::size_t>(rule)];
}

void Checker::violated(Rule rule, const std::string& text) {
    if (saw(rule)) return;
    violations_.push_back({rule, timeline_.now(), text});
    log_.note("VIOLATION", [&] { return std::string{name_of(rule)} + ": " + text; });
}

bool Checker::saw(Rule rule) const noexcept {
    return std::ranges::any_of(violations_, [&](const auto& it) { return it.rule == rule; });
}

void Checker::check() {
    std::array<CheckedLock*, 64> valid;
    std::size_t count = 0;
    for (auto* const lock : locks_)
        if (lock->check_valid() && count < valid.size()) valid[count++] = lock;
    for (std::size_t one = 0; one < count; ++one)
        for (std::size_t other = one + 1; other < count; ++other)
            if (valid[one]->overlaps(*valid[other]))
                violated(Rule::one_holder,
                         valid[one]->name() + " as " + log_.nickname(valid[one]->lock().owner()) + " and " +
                             valid[other]->name() + " as " + log_.nickname(valid[other]->lock().owner()) +
                             " of " + valid[one]->resources().front());
}

// ---- Tokens

std::size_t Checker::acquired(Hold hold) {
    if (hold.token > 0)
        for (const auto& other : holds_) {
            compare(other, hold);
            compare(hold, other);  // an acquisition may be confirmed after its own end
        }
    holds_.push_back(std::move(hold));
    return holds_.size() - 1;
}

void Checker::compare(const Hold& earlier, const Hold& later) {
    if (earlier.token == 0 || earlier.until > later.completed || earlier.token < later.token) return;
    const bool overlap = std::ranges::any_of(earlier.resources, [&](const auto& resource) {
        return std::ranges::binary_search(later.resources, resource);
    });
    if (overlap)
        violated(Rule::tokens_grow, std::to_string(earlier.token) + ", then " + std::to_string(later.token));
}

// ---- Keys

void Checker::expect_gone_in(nanoseconds span, std::string owner, std::vector<std::string> resources,
                             NodeSet unreached) {
    timeline_.after(span, [this, owner = std::move(owner), resources = std::move(resources), unreached] {
        for (std::size_t node = 0; node < nodes_.size(); ++node)
            for (const auto& resource : resources)
                if (!unreached[node] && nodes_[node]->owner(resource) == owner)
                    violated(Rule::nothing_is_left,
                             "of " + log_.nickname(owner) + " on " + nodes_[node]->name());
    });
}

void Checker::check_deadlocks() {
    for (const auto& node : nodes_)
        if (node->holds_longer_than(0ns)) violated(Rule::no_deadlock, node->name() + " holds on to a key");
}

}  // namespace redlock::sim
