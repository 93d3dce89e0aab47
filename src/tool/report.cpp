#include "report.hpp"

#include "span.hpp"

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
        out << "redlock:   " << node.name << "  " << name_of(node.vote) << ", " << text_of(node.took);
        if (node.vote == Vote::unknown) out << ": " << node.cause.message();
        if (!node.detail.empty()) out << " (" << node.detail << ")";
        out << '\n';
    }
}

}  // namespace redlock::tool
