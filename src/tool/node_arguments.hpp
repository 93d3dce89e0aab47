// Which nodes: the arguments that every subcommand takes.
#pragma once

#include "arguments.hpp"

#include <redlock/endpoint.hpp>
#include <redlock/redis_nodes.hpp>

#include <string>
#include <vector>

namespace redlock::tool {

class NodeArguments {
public:
    void add_to(Arguments& arguments);

    /// In the order given: --node and then --nodes-file; the variable REDLOCK_NODES where there is neither.
    /// Throws std::invalid_argument where there is none at all, or one is malformed; the message shows no
    /// secret.
    std::vector<Endpoint> endpoints() const;

    NodesOptions options() const;

private:
    std::vector<std::string> uris() const;

    std::vector<std::string> nodes_{};
    std::string file_{};
    NodesOptions options_{};
    bool all_at_once_ = false;
};

}  // namespace redlock::tool
