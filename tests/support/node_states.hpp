// What stands on nodes, made up.
#pragma once

#include <redlock/query.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace redlock::support {

/// A letter a node: 'a' and 'b' hold it, '.' is free, '?' is silent, '!' has a key that is no lock.
inline std::vector<NodeStatus> nodes_of(const std::string& letters) {
    std::vector<NodeStatus> result;
    for (const char letter : letters) {
        auto& it = result.emplace_back();
        it.expires_in = std::chrono::seconds{9 + result.size()};
        if (letter == '.') it.state = NodeStatus::State::free;
        if (letter == '!') it.state = NodeStatus::State::no_lock;
        if (letter == 'a' || letter == 'b') {
            it.state = NodeStatus::State::held;
            it.owner = std::string(40, letter);
        }
    }
    return result;
}

}  // namespace redlock::support
