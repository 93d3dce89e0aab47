// Invented states of nodes for tests of code that evaluates them.
#pragma once

#include <redlock/query.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace redlock::support {

/// Returns one state for each letter: 'a' and 'b' hold the lock, '.' is free, '?' did not reply, '!' has a
/// key that is no lock.
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
