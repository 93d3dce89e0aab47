// Gets the URIs of the nodes: from the arguments of the program, or else from REDLOCK_NODES, where commas
// separate them. Throws std::invalid_argument if there is none. The URI of a master that Sentinels know
// contains commas itself, between the addresses of the Sentinels. Those do not separate nodes.
#pragma once

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

inline std::vector<std::string> node_list(int argc, char** argv) {
    if (argc > 1) return {argv + 1, argv + argc};
    const char* const variable = std::getenv("REDLOCK_NODES");
    std::istringstream list{variable != nullptr ? variable : ""};
    std::vector<std::string> uris;
    bool ended = true;
    for (std::string part; std::getline(list, part, ',');) {
        if (ended)
            uris.push_back(part);
        else
            uris.back() += "," + part;
        const auto hosts = uris.back().find("+sentinel://");
        ended = hosts == std::string::npos || uris.back().find('/', hosts + 12) != std::string::npos;
    }
    if (uris.empty())
        throw std::invalid_argument{"no nodes: give their addresses as arguments, or set REDLOCK_NODES"};
    return uris;
}
