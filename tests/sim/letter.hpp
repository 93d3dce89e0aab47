// A command as it lies in a socket, with its own copy of the texts; and what a node answers to it.
#pragma once

#include <redlock/nodes.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::sim {

class Letter {
public:
    /// `quarantine` is what its sender has in NodesOptions; it goes with every command.
    Letter(const Command& command, std::chrono::milliseconds quarantine)
        : command_(command), quarantine_(quarantine) {
        resources_.assign(command.resources.begin(), command.resources.end());
        owner_ = command.owner;
        command_.resources = resources_;
        command_.owner = owner_;
    }
    Letter(const Letter&) = delete;
    Letter& operator=(const Letter&) = delete;

    const Command& command() const noexcept { return command_; }
    std::string_view owner() const noexcept { return owner_; }
    std::chrono::milliseconds quarantine() const noexcept { return quarantine_; }
    bool claims() const noexcept { return acquires(command_.verb); }
    bool erases() const noexcept { return command_.verb == Verb::compare_and_delete; }
    bool extends() const noexcept { return command_.verb == Verb::compare_and_expire; }

private:
    Command command_;
    std::chrono::milliseconds quarantine_;
    std::vector<std::string> resources_{};
    std::string owner_{};
};

struct Reply {
    Vote vote = Vote::unknown;
    std::error_code cause{};
    std::uint64_t count = 0;
};

/// "set", "extend" …, for a schedule.
inline std::string verb_of(const Command& command) {
    switch (command.verb) {
        case Verb::set_if_absent: return "set";
        case Verb::set_and_count: return "set and count";
        case Verb::raise_count: return "raise to " + std::to_string(command.fence);
        case Verb::compare_and_expire: return "extend to " + std::to_string(command.ttl.count()) + " ms";
        case Verb::compare_and_delete: return "delete";
    }
    return {};
}

}  // namespace redlock::sim
