#include "checker.hpp"

#include "resources.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace redlock::torture {
namespace {

std::vector<Hold> holds_of(std::uint64_t resources, const std::vector<Hold>& holds) {
    std::vector<Hold> result;
    for (const auto& hold : holds)
        if ((hold.resources & resources) != 0) result.push_back(hold);
    std::ranges::sort(result, {}, &Hold::from);
    return result;
}

std::string text(const Hold& hold) {
    auto result = "worker " + std::to_string(hold.worker) + " from " + std::to_string(hold.from) + " to " +
                  std::to_string(hold.until());
    if (hold.released_at == 0) result += " (not released)";
    if (hold.shared) result += ", shared";
    if (hold.fencing_token != 0) result += ", token " + std::to_string(hold.fencing_token);
    return result;
}

bool was_suspended(const Hold& hold, const std::vector<Suspension>& suspensions) {
    constexpr Instant moment = std::chrono::nanoseconds{std::chrono::milliseconds{100}}.count();
    return std::ranges::any_of(suspensions, [&](const Suspension& suspension) {
        return suspension.worker == hold.worker && suspension.from <= hold.notified_at &&
               suspension.until + moment >= hold.valid_until;
    });
}

}  // namespace

std::vector<Overlap> overlaps(const std::vector<Hold>& holds) {
    std::vector<Overlap> result;
    for (unsigned resource = 0; resource < resource_count; ++resource) {
        Hold longest_alone{};
        Hold longest_shared{};
        for (const auto& hold : holds_of(1U << resource, holds)) {
            if (hold.from < longest_alone.until()) result.push_back({resource, longest_alone, hold});
            if (!hold.shared && hold.from < longest_shared.until())
                result.push_back({resource, longest_shared, hold});
            auto& longest = hold.shared ? longest_shared : longest_alone;
            if (hold.until() > longest.until()) longest = hold;
        }
    }
    return result;
}

std::vector<TokenRegression> token_regressions(const std::vector<Hold>& holds) {
    std::vector<TokenRegression> result;
    Hold largest{};
    for (const auto& hold : holds_of(fenced_resource, holds)) {
        if (hold.fencing_token <= largest.fencing_token) result.push_back({largest, hold});
        if (hold.fencing_token > largest.fencing_token) largest = hold;
    }
    return result;
}

std::vector<std::int64_t> notification_delays(const std::vector<Hold>& holds,
                                              const std::vector<Suspension>& suspensions) {
    std::vector<std::int64_t> result;
    for (const auto& hold : holds)
        if (hold.notified_at != 0 && !was_suspended(hold, suspensions))
            result.push_back(hold.notified_at - hold.valid_until);
    std::ranges::sort(result);
    return result;
}

void find_stray_keys(const support::RedisServer& node, std::vector<std::string>& stray) {
    constexpr std::string_view absent = "-2";
    constexpr std::string_view for_ever = "-1";
    const auto add = [&](const std::string& key, const std::string& pttl) {
        stray.push_back(key + " on " + node.name() + ", PTTL " + pttl);
    };
    for (unsigned resource = 0; resource < resource_count; ++resource) {
        const auto [lock, readers, queue] = keys_of(resource);
        for (const auto& key : {lock, readers})
            if (const auto pttl = node.command({"PTTL", key}); pttl != absent) add(key, pttl);
        // A queue may wait for its expiry.
        if (const auto pttl = node.command({"PTTL", queue}); pttl == for_ever) add(queue, pttl);
    }
}

std::string text(const Overlap& overlap) {
    return name_of(overlap.resource) + ": " + text(overlap.earlier) + "; " + text(overlap.later);
}

std::string text(const TokenRegression& regression) {
    return text(regression.earlier) + "; then " + text(regression.later);
}

}  // namespace redlock::torture
