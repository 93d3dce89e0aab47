#include "report.hpp"

#include "escaped.hpp"
#include "span.hpp"

#include <string>

namespace redlock::tool {

const char* name_of(Vote vote) noexcept {
    switch (vote) {
        case Vote::granted: return "granted";
        case Vote::refused: return "refused";
        case Vote::unknown: break;
    }
    return "unknown";
}

void print_votes(std::ostream& out, const Result& result) {
    for (const auto& node : result.nodes()) {
        auto line = "  " + std::string{node.name} + "  " + name_of(node.vote) + ", " + text_of(node.took);
        if (node.cause) line += ": " + node.cause.message();
        if (!node.detail.empty()) line += " (" + node.detail + ")";
        out << "redlock: " << escaped(line) << '\n';
    }
}

}  // namespace redlock::tool
