// The arguments of `redlock run`.
#pragma once

#include "arguments/lock_arguments.hpp"
#include "supervisor.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace redlock::tool {

struct RunArguments : LockArguments {
    SupervisionPolicy policy{};
    std::vector<std::string> also{};
    std::string shell_command{};
    std::vector<std::string> words{};
    std::size_t holders = 0;
    bool hide_nodes = false;

    void add_to(CLI::App& app);
    /// Returns the program of the user. Throws std::invalid_argument if there is none, or if there are two.
    std::vector<std::string> program() const;
    /// A holder that dies also keeps the lock for the minimum hold time.
    std::chrono::milliseconds ttl() const { return std::max(lock.ttl, lock.min_hold); }
};

}  // namespace redlock::tool
