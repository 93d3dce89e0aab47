// What main() picks from: a subcommand of CLI11, and what it does once its arguments are read.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace redlock::tool {

struct Subcommand {
    CLI::App* arguments;  ///< owned by the app it was added to
    std::function<int()>
        carry_out;  ///< returns the exit status; may throw std::invalid_argument: wrong usage
};

}  // namespace redlock::tool
