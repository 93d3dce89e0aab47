// Gets the URIs of the nodes: from the arguments of the program, or else from REDLOCK_NODES, where commas
// separate them. Throws std::invalid_argument if there is none. The URIs of a master that Sentinels know, and
// of a Redis Cluster, contain commas themselves, between the addresses of servers.
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
        if (ended || part.find("://") != std::string::npos)
            uris.push_back(part);
        else
            uris.back() += "," + part;
        const auto sentinels = uris.back().find("+sentinel://");
        ended =
            uris.back().find("+cluster://") == std::string::npos &&
            (sentinels == std::string::npos || uris.back().find('/', sentinels + 12) != std::string::npos);
    }
    if (uris.empty())
        throw std::invalid_argument{"no nodes: give their addresses as arguments, or set REDLOCK_NODES"};
    return uris;
}
