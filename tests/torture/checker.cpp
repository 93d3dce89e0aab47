#include "checker.hpp"

#include "resources.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

namespace redlock::torture {
namespace {

std::vector<Hold> holds_of(std::uint64_t resources, const std::vector<Hold>& holds) {
    std::vector<Hold> result;
    for (const auto& hold : holds)
        if ((hold.resources & resources) != 0) result.push_back(hold);
    std::ranges::sort(result, {}, &Hold::from);
    return result;
}

bool was_suspended(const Hold& hold, const std::vector<Suspension>& suspensions) {
    constexpr Instant moment = std::chrono::nanoseconds{std::chrono::milliseconds{100}}.count();
    return std::ranges::any_of(suspensions, [&](const Suspension& suspension) {
        return suspension.process == HoldLog::process_of(hold.worker) &&
               suspension.from <= hold.notified_at && suspension.until + moment >= hold.valid_until;
    });
}

}  // namespace

std::vector<Overlap> overlaps(const std::vector<Hold>& holds) {
    std::vector<Overlap> result;
    for (unsigned resource = 0; resource < resource_count; ++resource) {
        std::vector<Hold> going_on;
        for (const auto& hold : holds_of(1U << resource, holds)) {
            std::erase_if(going_on, [&](const Hold& other) { return other.until() <= hold.from; });
            Overlap at_once{resource, {}};
            std::ranges::copy_if(going_on, std::back_inserter(at_once.holds), [&](const Hold& other) {
                return other.mode != Mode::shared || hold.mode != Mode::shared;
            });
            at_once.holds.push_back(hold);
            going_on.push_back(hold);
            if (at_once.holds.size() > capacity_of(resource)) result.push_back(std::move(at_once));
        }
    }
    return result;
}

std::vector<TokenRegression> token_regressions(const std::vector<Hold>& holds) {
    std::vector<TokenRegression> result;
    for (const auto resource : {fenced_resource, leader_resource}) {
        Hold largest{};
        for (const auto& hold : holds_of(resource, holds)) {
            if (hold.fencing_token <= largest.fencing_token) result.push_back({largest, hold});
            if (hold.fencing_token > largest.fencing_token) largest = hold;
        }
    }
    return result;
}

std::vector<Hold> reported_losses(const std::vector<Hold>& holds, const std::vector<Suspension>& suspensions,
                                  bool of_leaders) {
    std::vector<Hold> result;
    for (const auto& hold : holds)
        if (hold.notified_at != 0 && (hold.mode == Mode::leader) == of_leaders &&
            !was_suspended(hold, suspensions))
            result.push_back(hold);
    std::ranges::sort(result, {}, delay_of_report);
    return result;
}

std::int64_t delay_of_report(const Hold& hold) {
    return hold.notified_at - hold.valid_until;
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
        // A queue may remain until it expires.
        if (const auto pttl = node.command({"PTTL", queue}); pttl == for_ever) add(queue, pttl);
    }
}

std::string text(const Hold& hold) {
    auto result = "worker " + std::to_string(hold.worker) + " from " + std::to_string(hold.from) + " to " +
                  std::to_string(hold.until());
    if (hold.released_at == 0) result += " (not released)";
    if (hold.notified_at != 0) result += ", loss reported at " + std::to_string(hold.notified_at);
    if (hold.mode == Mode::shared) result += ", shared";
    if (hold.fencing_token != 0) result += ", token " + std::to_string(hold.fencing_token);
    return result;
}

std::string text(const Overlap& overlap) {
    auto result = name_of(overlap.resource) + ": ";
    for (const auto& hold : overlap.holds) result += (&hold == overlap.holds.data() ? "" : "; ") + text(hold);
    return result;
}

std::string text(const TokenRegression& regression) {
    return text(regression.earlier) + "; then " + text(regression.later);
}

}  // namespace redlock::torture
