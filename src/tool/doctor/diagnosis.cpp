#include "diagnosis.hpp"

#include "text/span.hpp"

#include <algorithm>
#include <array>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// Returns the distance of the node's clock from the median of the other clocks. If the number of the others
/// is even, the nearer of the two middle clocks is used. Otherwise the one wrong clock of three would make
/// the two right ones look wrong.
nanoseconds distance_from_others(std::span<const NodeFacts> nodes, std::size_t node) {
    std::vector<nanoseconds> others;
    for (std::size_t other = 0; other < nodes.size(); ++other)
        if (other != node && nodes[other].clock_offset) others.push_back(*nodes[other].clock_offset);
    if (others.empty()) return 0ns;
    std::ranges::sort(others);
    const auto offset = *nodes[node].clock_offset;
    const auto nearest = std::clamp(offset, others[(others.size() - 1) / 2], others[others.size() / 2]);
    return offset - nearest;
}

void judge_clock(std::span<const NodeFacts> nodes, std::size_t node, const CheckupPlan& plan,
                 Findings& findings) {
    if (!nodes[node].clock_offset) return;
    const auto distance = distance_from_others(nodes, node);
    const auto size = distance < 0ns ? -distance : distance;
    const auto tolerable = std::max<nanoseconds>(drift(plan.lock.ttl, plan.lock.drift_factor), 500ms);
    if (size <= tolerable) return;
    findings.push_back(
        {size > plan.lock.ttl ? Severity::unsafe : Severity::warning, "clock",
         "its wall clock is " + text_of(size) + (distance < 0ns ? " behind" : " ahead of") +
             " the other nodes'",
         "servers expire keys by this clock: when it is corrected, locks end early or late; fencing and the "
         "quarantine depend on it as well",
         "run NTP on it, and correct its clock while it does not take part"});
}

/// Adds the findings about all nodes together. If the end of a quarantine gives a majority its vote, the
/// missing quorum is only a warning.
void judge_number(Diagnosis& diagnosis) {
    const auto size = diagnosis.nodes.size();
    const auto waiting = std::ranges::count_if(diagnosis.nodes, &NodeDiagnosis::only_in_quarantine);
    const bool passes = diagnosis.spare() + waiting >= 0;
    if (diagnosis.spare() < 0)
        diagnosis.findings.push_back(
            {passes ? Severity::warning : Severity::unsafe, "quorum", "no majority of the nodes has a vote",
             "a lock needs a majority that can acquire, extend and release it",
             passes ? "wait for the end of the quarantine" : "bring back the nodes that have no vote"});
    if (size % 2 == 0)
        diagnosis.findings.push_back(
            {Severity::hint, "number",
             "of " + std::to_string(size) + " nodes " + std::to_string(size - quorum(size)) +
                 " may fail, no more than of " + std::to_string(size - 1),
             "an even number costs a node and gains nothing", "add or remove a node"});
}

}  // namespace

Severity NodeDiagnosis::verdict() const noexcept {
    return findings.empty() ? Severity::hint : findings.front().severity;
}

bool NodeDiagnosis::has_vote() const noexcept {
    return std::ranges::all_of(findings, &Finding::has_vote);
}

bool NodeDiagnosis::only_in_quarantine() const noexcept {
    const auto harmless = [](const Finding& it) { return it.has_vote || it.subject == "quarantine"; };
    return !has_vote() && std::ranges::all_of(findings, harmless);
}

std::size_t Diagnosis::votes() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(nodes, &NodeDiagnosis::has_vote));
}

Severity Diagnosis::verdict() const noexcept {
    auto worst = Severity::hint;
    const auto take = [&](Severity it) {
        worst = std::max(worst, it == Severity::unreachable ? Severity::warning : it);
    };
    for (const auto& node : nodes) take(node.verdict());
    for (const auto& finding : findings) take(finding.severity);
    return worst;
}

Diagnosis diagnose(std::span<const NodeFacts> nodes, const CheckupPlan& plan) {
    Diagnosis it;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        it.nodes.push_back({nodes[node], {}});
        auto& [facts, findings] = it.nodes.back();
        const auto is_same = [&run_id = nodes[node].info.run_id](const NodeFacts& other) {
            return !run_id.empty() && other.info.run_id == run_id;
        };
        // The probe of one may have met the probe of the other.
        if (std::ranges::count_if(nodes, is_same) > 1) facts.probe_was_held = false;
        findings = findings_of(facts, plan);
        const auto first = std::ranges::find_if(nodes, is_same);
        if (first < nodes.begin() + static_cast<std::ptrdiff_t>(node))
            findings.push_back(
                {Severity::unsafe, "same_server", "it is the same server as " + first->name,
                 "one server has two votes: if it loses its data, two holders may each have a majority",
                 "a separate server for each node", false});
        judge_clock(nodes, node, plan, findings);
        std::ranges::stable_sort(findings, std::greater{}, &Finding::severity);
    }
    judge_number(it);
    return it;
}

const char* name_of(Severity severity, const char* lowest) noexcept {
    const std::array names{lowest, "warning", "unsafe", "unreachable"};  // in the order of the enumerators
    return names[static_cast<std::size_t>(severity)];
}

std::string summary_of(const Diagnosis& diagnosis) {
    auto text = std::to_string(diagnosis.votes()) + " of " + std::to_string(diagnosis.nodes.size()) +
                " nodes have a vote, the quorum is " + std::to_string(diagnosis.quorum()) + ": ";
    if (diagnosis.spare() < 0) return text + "too few for a lock";
    return text + (diagnosis.spare() == 0 ? "none" : std::to_string(diagnosis.spare())) + " may fail";
}

std::string advice_of(const Diagnosis& diagnosis) {
    for (const auto severity : {Severity::unsafe, Severity::unreachable, Severity::warning})
        for (const auto& [facts, findings] : diagnosis.nodes)
            for (const auto& finding : findings)
                if (finding.severity == severity) return facts.name + ": " + finding.remedy;
    return {};
}

}  // namespace redlock::tool
