// Facts made up: a node that nothing is wrong with, to change one thing about.
#pragma once

#include "tool/doctor/diagnosis.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

namespace redlock::tool {

using namespace std::chrono_literals;

inline NodeFacts healthy(const std::string& name = "a") {
    NodeFacts node;
    node.name = name;
    node.round_trip = 1ms;
    node.info = {.make = "redis",
                 .version = "7.0.15",
                 .redis_version = "7.0.15",
                 .run_id = "run of " + name,
                 .mode = "standalone",
                 .role = "master",
                 .replicas = 0,
                 .uptime = 24h,
                 .appendonly = true,
                 .used_memory = 1'000'000,
                 .max_memory = 0,
                 .eviction = "noeviction"};
    node.appendfsync = "always";
    node.clock_offset = 0ns;
    return node;
}

inline std::vector<NodeFacts> healthy_nodes(std::size_t count) {
    std::vector<NodeFacts> nodes;
    while (nodes.size() < count)
        nodes.push_back(healthy(std::string(1, static_cast<char>('a' + nodes.size()))));
    return nodes;
}

/// "warning role", and so on.
inline std::vector<std::string> brief(const Findings& findings) {
    std::vector<std::string> result;
    for (const auto& it : findings)
        result.push_back(std::string{name_of(it.severity, "hint")} + " " + it.subject);
    return result;
}

}  // namespace redlock::tool
