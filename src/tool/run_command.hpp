// redlock run: a command under a lock that is extended for as long as it runs.
#pragma once

#include "arguments.hpp"

namespace redlock::tool {

void add_run(CommandLine& line);

}  // namespace redlock::tool
