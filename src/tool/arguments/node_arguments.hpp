// The arguments that name the nodes. Every subcommand takes them.
#pragma once

#include "value_options.hpp"

#include <redlock/endpoint.hpp>
#include <redlock/redis_nodes.hpp>

#include <string>
#include <vector>

namespace redlock::tool {

/// The environment variable with the addresses of the nodes.
inline constexpr const char* nodes_variable = "REDLOCK_NODES";

class NodeArguments {
public:
    void add_to(CLI::App& app);

    /// Returns the nodes in the order in which they are given: first --node, then --nodes-file. If there is
    /// neither, takes the variable REDLOCK_NODES, otherwise the file of the user, otherwise that of the host.
    /// Throws std::invalid_argument if there is no node or an address is malformed. The message says where
    /// the address was found, and shows no secret.
    std::vector<Endpoint> endpoints() const;

    NodesOptions options(Observer* observer = nullptr) const;

private:
    std::vector<std::string> nodes_{};
    std::string file_{};
    NodesOptions options_{};
};

}  // namespace redlock::tool
