#include "diagnosis.hpp"

#include "text/escaped.hpp"
#include "text/span.hpp"
#include "text/table.hpp"

#include <algorithm>
#include <ctime>
#include <functional>
#include <iomanip>

namespace redlock::tool {

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

Table table_of(const Diagnosis& diagnosis) {
    Table table{{"NODE", "VERDICT", "ROUND TRIP", "SERVER", "ROLE", "UP", "PERSISTENCE", "MEMORY"}};
    for (const auto& it : diagnosis.nodes) {
        const auto& node = it.facts;
        const auto& info = node.info;
        table.push_back(
            {node.name, name_of(it.verdict(), "ok"), node.round_trip ? text_of(*node.round_trip) : unknown,
             info.make.empty() ? unknown : info.make + " " + info.version, or_unknown(info.role),
             info.uptime ? text_of_age(*info.uptime) : unknown, persistence_of(node), memory_of(info)});
    }
    return table;
}

/// A finding, and the nodes to which it applies.
struct Shared {
    const Finding* finding;
    std::string names;
    std::size_t nodes;
};

/// Merges the findings that several nodes have in common. The worst findings come first.
std::vector<Shared> grouped(const Diagnosis& diagnosis) {
    std::vector<Shared> result;
    for (const auto& node : diagnosis.nodes)
        for (const auto& finding : node.findings) {
            auto same = std::ranges::find_if(result, [&](const Shared& it) {
                return it.finding->what == finding.what && it.finding->remedy == finding.remedy;
            });
            if (same == result.end()) same = result.insert(same, {&finding, {}, 0});
            same->names += (same->nodes++ == 0 ? "" : ", ") + node.facts.name;
        }
    std::ranges::stable_sort(result, std::greater{}, [](const Shared& it) { return it.finding->severity; });
    return result;
}

void print(std::ostream& out, const Finding& finding, const std::string& where) {
    out << '\n' << name_of(finding.severity, "hint") << ": " << escaped(where + ": " + finding.what) << '\n';
    out << "    why: " << escaped(finding.why) << '\n';
    out << "    change: " << escaped(finding.remedy) << '\n';
}

void print_quarantine(std::ostream& out, const NodeFacts& node) {
    if (!node.marker || !node.marker->placed) return;
    const auto until = std::chrono::system_clock::to_time_t(node.marker->until);
    std::tm parts{};
    out << escaped(node.name) << ": ";
    if (node.marker->left.count() > 0)
        out << "in quarantine until "
            << std::put_time(::gmtime_r(&until, &parts), "%F %T UTC by its clock\n");
    else
        out << "has its quarantine behind it\n";
}

}  // namespace

void print(std::ostream& out, const Diagnosis& diagnosis) {
    print_table(out, table_of(diagnosis));
    for (const auto& node : diagnosis.nodes) print_quarantine(out, node.facts);
    const auto all = diagnosis.nodes.size();
    for (const auto& [finding, names, nodes] : grouped(diagnosis))
        print(out, *finding, all > 1 && nodes == all ? "all nodes" : names);
    for (const auto& finding : diagnosis.findings) print(out, finding, "together");
    out << '\n' << name_of(diagnosis.verdict(), "ok") << ": " << summary_of(diagnosis) << '\n';
    if (const auto advice = advice_of(diagnosis); !advice.empty())
        out << "first: " << escaped(advice) << '\n';
}

}  // namespace redlock::tool
