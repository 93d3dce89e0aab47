#include "diagnosis_report.hpp"

#include "text/escaped.hpp"
#include "text/span.hpp"
#include "text/table.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace redlock::tool {

const char* heading_of(Severity severity) noexcept {
    return severity == Severity::hint ? "hint" : verdict_name(severity);
}

namespace {

constexpr auto* unknown = "?";

std::string or_unknown(const std::string& text) {
    return text.empty() ? unknown : text;
}

std::string persistence_of(const NodeFacts& node) {
    if (!node.info.appendonly) return unknown;
    return *node.info.appendonly ? "fsync " + or_unknown(node.appendfsync) : "none";
}

std::string memory_of(const ServerInfo& info) {
    if (!info.max_memory) return unknown;
    if (*info.max_memory == 0) return "unbounded";
    return std::to_string(100 * info.used_memory.value_or(0) / *info.max_memory) + " %, " +
           or_unknown(info.eviction);
}

/// Returns for example "2026-01-31 23:04:12 UTC".
std::string time_of_day(std::chrono::system_clock::time_point time) {
    const auto seconds = std::chrono::system_clock::to_time_t(time);
    std::tm parts{};
    std::array<char, 32> text{};
    const auto length = std::strftime(text.data(), text.size(), "%F %T UTC", ::gmtime_r(&seconds, &parts));
    return {text.data(), length};
}

Table table_of(const Diagnosis& diagnosis, std::span<const NodeFacts> nodes) {
    Table table{{"NODE", "VERDICT", "ROUND TRIP", "SERVER", "ROLE", "UP", "PERSISTENCE", "MEMORY"}};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto& node = nodes[i];
        const auto& info = node.info;
        table.add({node.name, verdict_name(diagnosis.nodes[i].verdict()),
                   node.round_trip ? text_of(*node.round_trip) : unknown,
                   info.make.empty() ? unknown : info.make + " " + info.version, or_unknown(info.role),
                   info.uptime ? text_of_age(*info.uptime) : unknown, persistence_of(node), memory_of(info)});
    }
    return table;
}

/// A finding and the nodes to which it applies.
struct Shared {
    const Finding* finding;
    std::vector<std::size_t> nodes;
};

/// Merges the findings that several nodes have in common. The worst findings come first.
std::vector<Shared> grouped(const Diagnosis& diagnosis) {
    std::vector<Shared> result;
    for (std::size_t node = 0; node < diagnosis.nodes.size(); ++node)
        for (const auto& finding : diagnosis.nodes[node].findings) {
            const auto same = std::ranges::find_if(result, [&](const Shared& it) {
                return it.finding->what == finding.what && it.finding->remedy == finding.remedy;
            });
            if (same == result.end())
                result.push_back({&finding, {node}});
            else
                same->nodes.push_back(node);
        }
    std::ranges::stable_sort(result, std::greater{}, [](const Shared& it) { return it.finding->severity; });
    return result;
}

std::string names_of(const Shared& shared, std::span<const NodeFacts> nodes) {
    if (shared.nodes.size() > 1 && shared.nodes.size() == nodes.size()) return "all nodes";
    std::string names;
    for (const auto node : shared.nodes) names += (names.empty() ? "" : ", ") + nodes[node].name;
    return names;
}

void print(std::ostream& out, const Finding& finding, const std::string& where) {
    out << '\n' << heading_of(finding.severity) << ": " << escaped(where + ": " + finding.what) << '\n';
    out << "    why: " << escaped(finding.why) << '\n';
    out << "    change: " << escaped(finding.remedy) << '\n';
}

void print_quarantines(std::ostream& out, std::span<const NodeFacts> nodes) {
    for (const auto& node : nodes) {
        if (!node.marker || !node.marker->placed) continue;
        out << escaped(node.name) << ": ";
        if (node.marker->left.count() > 0)
            out << "in quarantine until " << time_of_day(node.marker->until) << " by its clock\n";
        else
            out << "has its quarantine behind it\n";
    }
}

}  // namespace

void print(std::ostream& out, const Diagnosis& diagnosis, std::span<const NodeFacts> nodes) {
    out << table_of(diagnosis, nodes);
    print_quarantines(out, nodes);
    for (const auto& shared : grouped(diagnosis)) print(out, *shared.finding, names_of(shared, nodes));
    for (const auto& finding : diagnosis.findings) print(out, finding, "together");
    out << '\n' << verdict_name(diagnosis.verdict) << ": " << summary_of(diagnosis) << '\n';
    if (const auto advice = advice_of(diagnosis, nodes); !advice.empty())
        out << "first: " << escaped(advice) << '\n';
}

}  // namespace redlock::tool
