// redlock run: a command under a lock that is extended for as long as it runs.
#pragma once

#include "subcommand.hpp"

#include <string>
#include <vector>

namespace redlock::tool {

/// Where `words` begin with "run", takes the command that is to be run off their end.
Subcommand add_run(CLI::App& app, std::vector<std::string>& words);

}  // namespace redlock::tool
