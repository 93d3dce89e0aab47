#include "json.hpp"

#include "diagnosis_report.hpp"
#include "report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace redlock::tool {
namespace {

using nlohmann::ordered_json;

/// Text that is not UTF-8 is shown with replacements rather than not at all.
void print(std::ostream& out, const ordered_json& json) {
    out << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

double milliseconds_of(std::chrono::nanoseconds span) {
    return std::chrono::duration<double, std::milli>{span}.count();
}

// ---- acquire, extend, release

ordered_json json_of(const Result& result) {
    ordered_json json;
    json["error"] = nullptr;
    if (!result) json["error"] = result.error().message();
    json["attempts"] = result.attempts();
    json["nodes"] = ordered_json::array();
    for (const auto& node : result.nodes()) {
        ordered_json it{{"name", node.name}, {"vote", name_of(node.vote)}};
        it["cause"] = nullptr;
        if (node.vote == Vote::unknown) it["cause"] = node.cause.message();
        if (!node.detail.empty()) it["detail"] = node.detail;
        it["took_ms"] = milliseconds_of(node.took);
        json["nodes"].push_back(std::move(it));
    }
    return json;
}

// ---- status

ordered_json json_of(const NodeStatus& node) {
    using State = NodeStatus::State;
    ordered_json json{{"name", node.name}, {"state", name_of(node.state)}};
    json["took_ms"] = milliseconds_of(node.took);
    if (node.state == State::held) {
        json["owner"] = node.owner;
        json["ours"] = is_ours(node.owner);
        json["expires_in_ms"] = node.expires_in.count();
    }
    if (!node.holder.empty()) json["holder"] = node.holder;
    if (node.waiters > 0) json["waiting"] = node.waiters;
    if (node.readers > 0) json["readers"] = node.readers;
    if (node.state == State::no_lock) json["type"] = node.type;
    if (node.fencing_count > 0) json["fencing_count"] = node.fencing_count;
    if (node.state != State::unknown) return json;
    json["cause"] = node.cause.message();
    json["detail"] = node.detail;
    return json;
}

// ---- doctor

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

ordered_json milliseconds_or_null(const std::optional<std::chrono::nanoseconds>& span) {
    return span ? ordered_json(milliseconds_of(*span)) : ordered_json(nullptr);
}

ordered_json json_of(const NodeFacts& node, const NodeDiagnosis& diagnosis) {
    const auto& info = node.info;
    ordered_json json{{"name", node.name},
                      {"verdict", verdict_name(diagnosis.verdict())},
                      {"has_vote", diagnosis.has_vote()},
                      {"round_trip_ms", milliseconds_or_null(node.round_trip)},
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

void print_json(std::ostream& out, const std::string& resource, const Lease& lease, const Result& result) {
    ordered_json json{{"resource", resource}};
    if (result) {
        json["owner"] = lease.owner.view();
        json["validity_ms"] = std::chrono::floor<std::chrono::milliseconds>(result.validity()).count();
        if (lease.fencing_token != 0) json["fencing_token"] = lease.fencing_token;
    }
    json.update(json_of(result));
    print(out, json);
}

void print_json(std::ostream& out, const std::string& resource, const LockStatus& status) {
    ordered_json json{{"resource", resource},
                      {"state", name_of(status.kind)},
                      {"summary", summary_of(status)},
                      {"answered", status.answered}};
    if (status.kind == LockStatus::Kind::held) {
        json["owner"] = status.owner;
        json["ours"] = is_ours(status.owner);
        json["held_on"] = status.held_on;
        json["expires_in_ms"] = status.expires_in.count();
        if (!status.holder.empty()) json["holder"] = status.holder;
        if (status.readers > 0) json["readers"] = status.readers;
    }
    json["nodes"] = ordered_json::array();
    for (const auto& node : status.nodes) json["nodes"].push_back(json_of(node));
    print(out, json);
}

void print_json(std::ostream& out, const Diagnosis& diagnosis, std::span<const NodeFacts> nodes) {
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
    print(out, json);
}

}  // namespace redlock::tool
