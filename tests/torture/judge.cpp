#include "judge.hpp"

#include "resources.hpp"

#include <algorithm>
#include <chrono>

namespace redlock::torture {
namespace {

std::vector<Claim> claims_on(std::uint64_t resources, const std::vector<Claim>& claims) {
    std::vector<Claim> result;
    for (const auto& claim : claims)
        if ((claim.resources & resources) != 0) result.push_back(claim);
    std::ranges::sort(result, {}, &Claim::from);
    return result;
}

std::string text(const Claim& claim) {
    auto result = "worker " + std::to_string(claim.worker) + " from " + std::to_string(claim.from) + " to " +
                  std::to_string(claim.until());
    if (claim.released_at == 0) result += " (not released)";
    if (claim.fencing_token != 0) result += ", token " + std::to_string(claim.fencing_token);
    return result;
}

bool was_stopped(const Claim& claim, const std::vector<Stop>& stops) {
    constexpr Instant moment = std::chrono::nanoseconds{std::chrono::milliseconds{100}}.count();
    return std::ranges::any_of(stops, [&](const Stop& stop) {
        return stop.worker == claim.worker && stop.from <= claim.told_at &&
               stop.until + moment >= claim.promised_until;
    });
}

}  // namespace

std::vector<Overlap> overlaps(const std::vector<Claim>& claims) {
    std::vector<Overlap> result;
    for (unsigned resource = 0; resource < resource_count; ++resource) {
        Claim longest{};
        for (const auto& claim : claims_on(1U << resource, claims)) {
            if (claim.from < longest.until()) result.push_back({resource, longest, claim});
            if (claim.until() > longest.until()) longest = claim;
        }
    }
    return result;
}

std::vector<Disorder> disorders(const std::vector<Claim>& claims) {
    std::vector<Disorder> result;
    Claim largest{};
    for (const auto& claim : claims_on(fenced_resource, claims)) {
        if (claim.fencing_token <= largest.fencing_token) result.push_back({largest, claim});
        if (claim.fencing_token > largest.fencing_token) largest = claim;
    }
    return result;
}

std::vector<std::int64_t> lateness(const std::vector<Claim>& claims, const std::vector<Stop>& stops) {
    std::vector<std::int64_t> result;
    for (const auto& claim : claims)
        if (claim.told_at != 0 && !was_stopped(claim, stops))
            result.push_back(claim.told_at - claim.promised_until);
    std::ranges::sort(result);
    return result;
}

std::vector<std::string> stray_keys(support::Cluster& nodes) {
    std::vector<std::string> result;
    for (const auto& node : nodes)
        for (unsigned resource = 0; resource < resource_count; ++resource)
            if (node.command({"EXISTS", name_of(resource)}) != "0")
                result.push_back(name_of(resource) + " on " + node.name() + ", PTTL " +
                                 node.command({"PTTL", name_of(resource)}));
    return result;
}

std::string text(const Overlap& overlap) {
    return name_of(overlap.resource) + ": " + text(overlap.earlier) + "; " + text(overlap.later);
}

std::string text(const Disorder& disorder) {
    return text(disorder.earlier) + "; then " + text(disorder.later);
}

}  // namespace redlock::torture
