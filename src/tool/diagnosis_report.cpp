#include "diagnosis_report.hpp"

#include "span.hpp"
#include "table.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::tool {
namespace {

using nlohmann::ordered_json;

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

std::string role_of(const ServerInfo& info) {
    return info.role == "slave" ? "replica" : or_unknown(info.role);
}

/// "23:04:12 UTC".
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
                   info.make.empty() ? unknown : info.make + " " + info.version, role_of(info),
                   info.uptime ? text_of_age(*info.uptime) : unknown, persistence_of(node), memory_of(info)});
    }
    return table;
}

/// A finding and the nodes that it is true of.
struct Shared {
    const Finding* finding;
    std::vector<std::size_t> nodes;
};

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

const char* heading_of(Severity severity) {
    return severity == Severity::hint ? "hint" : verdict_name(severity);
}

void print(std::ostream& out, const Finding& finding, const std::string& where) {
    out << '\n' << heading_of(finding.severity) << ": " << where << ": " << finding.what << '\n';
    out << "    why: " << finding.why << '\n';
    out << "    change: " << finding.remedy << '\n';
}

void print_quarantines(std::ostream& out, std::span<const NodeFacts> nodes) {
    for (const auto& node : nodes) {
        if (!node.marker || !node.marker->placed) continue;
        out << node.name << ": ";
        if (node.marker->left.count() > 0)
            out << "in quarantine until " << time_of_day(node.marker->until) << " by its clock\n";
        else
            out << "has its quarantine behind it\n";
    }
}

ordered_json json_of(const Finding& finding) {
    return {{"severity", heading_of(finding.severity)},
            {"subject", finding.subject},
            {"what", finding.what},
            {"why", finding.why},
            {"remedy", finding.remedy}};
}

ordered_json json_of(const Findings& findings) {
    auto json = ordered_json::array();
    for (const auto& finding : findings) json.push_back(json_of(finding));
    return json;
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json or_null(const std::string& text) {
    return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json milliseconds_of(const std::optional<std::chrono::nanoseconds>& span) {
    if (!span) return nullptr;
    return std::chrono::duration<double, std::milli>{*span}.count();
}

ordered_json json_of(const NodeFacts& node, const NodeDiagnosis& diagnosis) {
    const auto& info = node.info;
    ordered_json json{{"name", node.name},
                      {"verdict", verdict_name(diagnosis.verdict())},
                      {"has_vote", diagnosis.has_vote()},
                      {"round_trip_ms", milliseconds_of(node.round_trip)},
                      {"server", or_null(info.make)},
                      {"version", or_null(info.version)},
                      {"role", or_null(info.role == "slave" ? "replica" : info.role)},
                      {"run_id", or_null(info.run_id)},
                      {"uptime_s", info.uptime ? ordered_json(info.uptime->count()) : nullptr},
                      {"appendonly", or_null(info.appendonly)},
                      {"appendfsync", or_null(node.appendfsync)},
                      {"used_memory", or_null(info.used_memory)},
                      {"maxmemory", or_null(info.max_memory)},
                      {"maxmemory_policy", or_null(info.eviction)}};
    if (node.marker && node.marker->placed) json["quarantine_left_ms"] = node.marker->left.count();
    json["findings"] = json_of(diagnosis.findings);
    return json;
}

}  // namespace

void print(std::ostream& out, const Diagnosis& diagnosis, std::span<const NodeFacts> nodes) {
    out << table_of(diagnosis, nodes);
    print_quarantines(out, nodes);
    for (const auto& shared : grouped(diagnosis)) print(out, *shared.finding, names_of(shared, nodes));
    for (const auto& finding : diagnosis.findings) print(out, finding, "together");
    out << '\n' << verdict_name(diagnosis.verdict) << ": " << summary_of(diagnosis) << '\n';
    if (const auto advice = advice_of(diagnosis, nodes); !advice.empty()) out << "first: " << advice << '\n';
}

ordered_json json_of(const Diagnosis& diagnosis, std::span<const NodeFacts> nodes) {
    ordered_json json{{"verdict", verdict_name(diagnosis.verdict)},
                      {"summary", summary_of(diagnosis)},
                      {"votes", diagnosis.votes},
                      {"quorum", diagnosis.quorum},
                      {"may_fail", std::max(diagnosis.spare(), 0L)},
                      {"advice", or_null(advice_of(diagnosis, nodes))},
                      {"findings", json_of(diagnosis.findings)}};
    json["nodes"] = ordered_json::array();
    for (std::size_t i = 0; i < nodes.size(); ++i)
        json["nodes"].push_back(json_of(nodes[i], diagnosis.nodes[i]));
    return json;
}

}  // namespace redlock::tool
