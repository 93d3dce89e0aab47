#include "conflict.hpp"

#include "lock_status.hpp"

#include <redlock/error.hpp>
#include <redlock/query.hpp>

namespace redlock::tool {

std::string in_the_way(Nodes& nodes, Resources resources, std::string_view said,
                       const AcquireArguments& arguments, const Result& result) {
    if (result.error() != Errc::held_by_other || !arguments.is_worth_a_word(result)) return {};
    for (const auto& resource : resources) {
        const auto status = query(nodes, resource);
        if (status.kind == LockStatus::Kind::free) continue;
        const bool only = resources.size() == 1 && resource == said;
        return "; now " + (only ? "" : resource + ": ") + summary_of(status);
    }
    return "; now free";
}

}  // namespace redlock::tool
