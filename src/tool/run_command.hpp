// redlock run: a command under a lock that is extended for as long as it runs.
#pragma once

#include "arguments.hpp"

#include <string>
#include <vector>

namespace redlock::tool {

/// Where `words` begin with "run", takes the command that is to be run off their end.
void add_run(CommandLine& line, std::vector<std::string>& words);

}  // namespace redlock::tool
