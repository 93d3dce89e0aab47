#include "json.hpp"

#include "wire/causes.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace redlock::tool {
namespace {

using nlohmann::ordered_json;

/// Prints ASCII only, because a terminal also obeys control characters above 0x7F. Text that is not UTF-8 is
/// shown with replacements rather than not at all.
void print(std::ostream& out, const ordered_json& json) {
    out << json.dump(2, ' ', true, ordered_json::error_handler_t::replace) << '\n';
}

double milliseconds_of(std::chrono::nanoseconds span) {
    return std::chrono::duration<double, std::milli>{span}.count();
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json or_null(const std::string& text) {
    return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

/// Returns `value` if it is `known`, otherwise null.
template <class T>
ordered_json where(bool known, const T& value) {
    return known ? ordered_json(value) : ordered_json(nullptr);
}

/// Returns the name of the enumerator of Errc. For an error of the system, returns its category and number.
std::string code_of(const std::error_code& error) {
    const bool ours = error.category() == category();
    const auto name = ours ? detail::name_of(static_cast<Errc>(error.value())) : std::string_view{};
    return name.empty() ? error.category().name() + (":" + std::to_string(error.value())) : std::string{name};
}

ordered_json cause_of(const std::error_code& cause, const std::string& detail) {
    if (!cause) return nullptr;
    return {{"code", code_of(cause)}, {"message", cause.message()}, {"detail", detail}};
}

ordered_json error_of(const std::error_code& error, const std::string& message) {
    if (!error) return nullptr;
    return {{"code", code_of(error)}, {"message", message}};
}

/// Returns a list with the objects that `json_of` returns for the elements.
template <class Elements, class JsonOf>
ordered_json list_of(const Elements& elements, JsonOf json_of) {
    auto list = ordered_json::array();
    for (const auto& element : elements) list.push_back(json_of(element));
    return list;
}

// ---- acquire, extend, release

ordered_json json_of_report(const NodeReport& node) {
    return {{"name", node.name},
            {"vote", name_of(node.vote)},
            {"cause", cause_of(node.cause, node.detail)},
            {"took_ms", milliseconds_of(node.took)}};
}

// ---- status

ordered_json json_of_node(const NodeStatus& node) {
    using State = NodeStatus::State;
    const bool held = node.state == State::held;
    const bool answered = node.state != State::unknown;
    return {{"name", node.name},
            {"state", name_of(node.state)},
            {"took_ms", milliseconds_of(node.took)},
            {"owner", where(held, node.owner)},
            {"ours", where(held, is_ours(node.owner))},
            {"expires_in_ms", where(held, node.expires_in.count())},
            {"holder", or_null(node.holder)},
            {"waiting", where(answered, node.waiters)},
            {"readers", where(answered, node.readers)},
            {"fencing_count", where(answered, node.fencing_count)},
            {"type", or_null(node.type)},
            {"cause", cause_of(node.cause, node.detail)}};
}

// ---- bench

ordered_json json_of(const LatencyHistogram& latencies) {
    if (latencies.count() == 0) return nullptr;
    return {{"p50_ms", milliseconds_of(latencies.percentile(50))},
            {"p90_ms", milliseconds_of(latencies.percentile(90))},
            {"p99_ms", milliseconds_of(latencies.percentile(99))},
            {"p99_9_ms", milliseconds_of(latencies.percentile(99.9))},
            {"max_ms", milliseconds_of(latencies.percentile(100))}};
}

/// Returns the counted failures. Each has its verb or node in the field `whose` and its reason in the field
/// `why`.
ordered_json json_of(const std::map<Failure, std::uint64_t>& failures, const char* whose, const char* why) {
    return list_of(failures, [&](const auto& it) -> ordered_json {
        return {{whose, it.first.first},
                {why, error_of(it.first.second, it.first.second.message())},
                {"count", it.second}};
    });
}

ordered_json json_of_bar(const Bar& bar) {
    return {{"from_ms", milliseconds_of(bar.from)}, {"to_ms", milliseconds_of(bar.to)}, {"count", bar.count}};
}

ordered_json json_of_round(const Measurement& measurement) {
    const auto& writes = measurement.shared_writes;
    const ordered_json shared{
        {"count", writes.count()}, {"commands", measurement.shared_commands}, {"waited", json_of(writes)}};
    return {{"order", measurement.round == Round::sequential ? "sequential" : "all_at_once"},
            {"took_ms", milliseconds_of(measurement.took)},
            {"acquired", measurement.acquire.count()},
            {"per_second", measurement.per_second()},
            {"acquire", json_of(measurement.acquire)},
            {"release", json_of(measurement.release)},
            {"histogram", list_of(bars_of(measurement.acquire), json_of_bar)},
            {"shared_writes", where(writes.count() > 0, shared)},
            {"failures", json_of(measurement.failures, "verb", "error")},
            {"no_votes", json_of(measurement.node_causes, "node", "cause")}};
}

// ---- doctor

ordered_json json_of_finding(const Finding& finding) {
    return {{"severity", name_of(finding.severity, "hint")},
            {"subject", finding.subject},
            {"what", finding.what},
            {"why", finding.why},
            {"remedy", finding.remedy}};
}

ordered_json json_of_finding_at_node(const Finding& finding) {
    auto json = json_of_finding(finding);
    json["cause"] = cause_of(finding.cause.cause, finding.cause.detail);
    return json;
}

ordered_json json_of_diagnosis(const NodeDiagnosis& diagnosis) {
    const auto& node = diagnosis.facts;
    const auto& info = node.info;
    const bool placed = node.marker && node.marker->placed;
    return {{"name", node.name},
            {"verdict", name_of(diagnosis.verdict(), "ok")},
            {"has_vote", diagnosis.has_vote()},
            {"round_trip_ms", node.round_trip ? ordered_json(milliseconds_of(*node.round_trip)) : nullptr},
            {"server", or_null(info.make)},
            {"version", or_null(info.version)},
            {"role", or_null(info.role)},
            {"run_id", or_null(info.run_id)},
            {"uptime_s", info.uptime ? ordered_json(info.uptime->count()) : nullptr},
            {"appendonly", or_null(info.appendonly)},
            {"appendfsync", or_null(node.appendfsync)},
            {"used_memory", or_null(info.used_memory)},
            {"maxmemory", or_null(info.max_memory)},
            {"maxmemory_policy", or_null(info.eviction)},
            {"quarantine_left_ms", placed ? ordered_json(node.marker->left.count()) : nullptr},
            {"findings", list_of(diagnosis.findings, json_of_finding_at_node)}};
}

}  // namespace

void print_json(std::ostream& out, const std::string& resource, const Lease& lease, const Result& result) {
    const auto validity = std::chrono::floor<std::chrono::milliseconds>(result.validity());
    const bool held = result && !lease.owner.empty();
    const bool numbered = held && lease.fencing_token != 0;
    print(out, {{"resource", resource},
                {"owner", where(held, lease.owner.view())},
                {"validity_ms", where(held, validity.count())},
                {"fencing_token", where(numbered, lease.fencing_token)},
                {"error", error_of(result.error(), result.message())},
                {"attempts", result.attempts()},
                {"nodes", list_of(result.nodes(), json_of_report)}});
}

std::string owner_in_json(const std::string& text) {
    const auto json = ordered_json::parse(text, nullptr, false);
    const auto owner = json.find("owner");
    return owner != json.end() && owner->is_string() ? owner->get<std::string>() : std::string{};
}

void print_json(std::ostream& out, const std::string& resource, const LockStatus& status, bool with_nodes) {
    const bool held = status.kind == LockStatus::Kind::held;
    ordered_json json{{"resource", resource},
                      {"state", name_of(status.kind)},
                      {"summary", line_of_who(status)},
                      {"answered", status.answered},
                      {"owner", where(held, status.owner)},
                      {"ours", where(held, is_ours(status.owner))},
                      {"held_on", where(held, status.held_on)},
                      {"expires_in_ms", where(held, status.expires_in.count())},
                      {"holder", held ? or_null(status.holder) : nullptr},
                      {"readers", where(held, status.readers)}};
    if (with_nodes) json["nodes"] = list_of(status.nodes, json_of_node);
    print(out, json);
}

void print_json(std::ostream& out, std::span<const Measurement> rounds, const std::error_code& error) {
    print(out, {{"error", error_of(error, error.message())}, {"rounds", list_of(rounds, json_of_round)}});
}

void print_json(std::ostream& out, const Diagnosis& diagnosis) {
    print(out, {{"verdict", name_of(diagnosis.verdict(), "ok")},
                {"summary", summary_of(diagnosis)},
                {"votes", diagnosis.votes()},
                {"quorum", diagnosis.quorum()},
                {"may_fail", std::max(diagnosis.spare(), 0L)},
                {"advice", or_null(advice_of(diagnosis))},
                {"findings", list_of(diagnosis.findings, json_of_finding)},
                {"nodes", list_of(diagnosis.nodes, json_of_diagnosis)}});
}

}  // namespace redlock::tool
