// redlock acquire, extend, release: the verbs one by one, for scripts. The lease outlives the process;
// whoever knows its owner may extend and release it.
#pragma once

#include "subcommand.hpp"

namespace redlock::tool {

Subcommand add_acquire(CLI::App& app);
Subcommand add_extend(CLI::App& app);
Subcommand add_release(CLI::App& app);

}  // namespace redlock::tool
