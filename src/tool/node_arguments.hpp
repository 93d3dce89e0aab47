// Which nodes: the arguments that every subcommand takes.
#pragma once

#include "arguments.hpp"

#include <redlock/endpoint.hpp>
#include <redlock/redis_nodes.hpp>

#include <string>
#include <vector>

namespace redlock::tool {

/// The environment variable with the addresses of the nodes.
inline constexpr const char* nodes_variable = "REDLOCK_NODES";

class NodeArguments {
public:
    void add_to(Arguments& arguments);

    /// In the order given: --node and then --nodes-file; where there is neither the variable REDLOCK_NODES,
    /// or the file of the user, or that of the host. Throws std::invalid_argument where there is none at all,
    /// or one is malformed; the message says where that stands, and shows no secret.
    std::vector<Endpoint> endpoints() const;

    NodesOptions options() const;

private:
    std::vector<std::string> nodes_{};
    std::string file_{};
    NodesOptions options_{};
    bool all_at_once_ = false;
};

}  // namespace redlock::tool
