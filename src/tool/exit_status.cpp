#include "exit_status.hpp"

#include <redlock/error.hpp>

#include <algorithm>

namespace redlock::tool::exit_status {
namespace {

/// Whether there would be no quorum of the nodes that let us in.
bool is_denied(const Result& result) noexcept {
    const auto nodes = result.nodes();
    const auto refusing = std::ranges::count_if(nodes, [](const NodeReport& node) {
        return node.cause == Errc::authentication_failed || node.cause == Errc::permission_denied;
    });
    return nodes.size() - static_cast<std::size_t>(refusing) < quorum(nodes.size());
}

}  // namespace

int of(const Result& result, int conflict) noexcept {
    const auto error = result.error();
    if (!error) return 0;
    if (error == Errc::held_by_other) return conflict;
    if (error == Errc::lost || error == Errc::not_held || error == Errc::hold_limit) return lost;
    if (error.category() != category()) return internal;
    return is_denied(result) ? denied : no_quorum;
}

}  // namespace redlock::tool::exit_status
