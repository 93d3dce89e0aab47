// Where the examples get their nodes from: their arguments, or REDLOCK_NODES with commas in between.
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
    for (std::string uri; std::getline(list, uri, ',');) uris.push_back(uri);
    return uris;
}
