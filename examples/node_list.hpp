// Where the examples get their nodes from: their arguments, or REDLOCK_NODES with commas in between. Those
// between the Sentinels of one master belong to its address.
#pragma once

#include <cstdlib>
#include <sstream>
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
    return uris;
}
