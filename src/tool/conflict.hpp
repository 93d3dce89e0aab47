// Who is in the way of an acquisition that was refused: for the message, which somebody reads.
#pragma once

#include "lock_arguments.hpp"

#include <redlock/nodes.hpp>
#include <redlock/result.hpp>

#include <string>

namespace redlock::tool {

/// Returns "; now " and what stands under the first of the resources that is not free, as `redlock who` says
/// it. It asks the nodes once, which blocks for one node_timeout at most. Returns nothing, without asking, if
/// the acquisition was not refused or the user wants no word of it.
std::string in_the_way(Nodes& nodes, Resources resources, const AcquireArguments& arguments,
                       const Result& result);

}  // namespace redlock::tool
