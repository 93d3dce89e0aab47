#include "report.hpp"

#include "span.hpp"

namespace redlock::tool {
namespace {

const char* name_of(Vote vote) {
    switch (vote) {
        case Vote::granted: return "granted";
        case Vote::refused: return "refused";
        case Vote::unknown: break;
    }
    return "unknown";
}

}  // namespace

void print_json(std::ostream& out, const nlohmann::ordered_json& json) {
    out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

void print_votes(std::ostream& out, const Result& result) {
    for (const auto& node : result.nodes()) {
        out << "redlock:   " << node.name << "  " << name_of(node.vote) << ", " << text_of(node.took);
        if (node.vote == Vote::unknown) out << ": " << node.cause.message();
        if (!node.detail.empty()) out << " (" << node.detail << ")";
        out << '\n';
    }
}

nlohmann::ordered_json json_of(const Result& result) {
    nlohmann::ordered_json json;
    json["error"] = nullptr;
    if (!result) json["error"] = result.error().message();
    json["attempts"] = result.attempts();
    json["nodes"] = nlohmann::ordered_json::array();
    for (const auto& node : result.nodes()) {
        nlohmann::ordered_json it{{"name", node.name}, {"vote", name_of(node.vote)}};
        it["cause"] = nullptr;
        if (node.vote == Vote::unknown) it["cause"] = node.cause.message();
        if (!node.detail.empty()) it["detail"] = node.detail;
        it["took_ms"] = std::chrono::duration<double, std::milli>{node.took}.count();
        json["nodes"].push_back(std::move(it));
    }
    return json;
}

}  // namespace redlock::tool
