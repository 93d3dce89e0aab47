// Tells the user who holds the lock when an acquisition was refused.
#pragma once

#include "lock_arguments.hpp"

#include <redlock/nodes.hpp>
#include <redlock/result.hpp>

#include <string>
#include <string_view>

namespace redlock::tool {

/// Returns "; now " and the state of the first resource that is not free, in the words of `redlock who`.
/// Names that resource as well, unless it is the only one and the message begins with it: `said`. Asks the
/// nodes once, which blocks for one node_timeout at most. Returns an empty text without asking if the
/// acquisition was not refused, or if the user wants no message.
std::string in_the_way(Nodes& nodes, Resources resources, std::string_view said,
                       const AcquireArguments& arguments, const Result& result);

}  // namespace redlock::tool
