#include "conflict.hpp"

#include "lock_status.hpp"

#include <redlock/error.hpp>
#include <redlock/query.hpp>

namespace redlock::tool {

std::string in_the_way(Nodes& nodes, Resources resources, const AcquireArguments& arguments,
                       const Result& result) {
    if (result.error() != Errc::held_by_other || !arguments.is_worth_a_word(result)) return {};
    for (const auto& resource : resources) {
        const auto status = query(nodes, resource);
        if (status.kind == LockStatus::Kind::free) continue;
        return "; now " + (resources.size() > 1 ? resource + ": " : "") + summary_of(status);
    }
    return resources.empty() ? "" : "; now free";
}

}  // namespace redlock::tool
