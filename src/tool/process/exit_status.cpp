#include "exit_status.hpp"

#include <redlock/error.hpp>

#include <algorithm>

namespace redlock::tool::exit_status {

bool is_refusal(const std::error_code& cause) noexcept {
    return cause == Errc::authentication_failed || cause == Errc::permission_denied;
}

int without_quorum(std::size_t nodes, std::size_t refusing) noexcept {
    return refusing > 0 && nodes - refusing < quorum(nodes) ? denied : no_quorum;
}

int of(const Result& result, int conflict) noexcept {
    const auto error = result.error();
    if (!error) return 0;
    if (error == Errc::held_by_other) return conflict;
    if (error == Errc::lost) return lost;
    if (error.category() != category()) return internal;
    const auto nodes = result.nodes();
    const auto refusing = std::ranges::count_if(nodes, is_refusal, &NodeReport::cause);
    return without_quorum(nodes.size(), static_cast<std::size_t>(refusing));
}

}  // namespace redlock::tool::exit_status
