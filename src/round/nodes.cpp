// Checks what every implementation of Nodes is constructed with.
#include <redlock/nodes.hpp>

#include <stdexcept>

namespace redlock {

Nodes::Nodes(std::vector<std::string> names, std::chrono::milliseconds node_timeout,
             std::chrono::milliseconds quarantine)
    : node_timeout_(node_timeout), quarantine_(quarantine) {
    if (names.empty()) throw std::invalid_argument("redlock: the list of nodes is empty");
    if (names.size() > max_nodes)
        throw std::invalid_argument("redlock: the list of nodes has " + std::to_string(names.size()) +
                                    " entries; at most " + std::to_string(max_nodes) + " are allowed");
    if (node_timeout < node_timeout.zero() || node_timeout > std::chrono::hours{1})
        throw std::invalid_argument("redlock: node_timeout is " + std::to_string(node_timeout.count()) +
                                    " ms; it must be from 0 to 1 h");
    names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
}

}  // namespace redlock
