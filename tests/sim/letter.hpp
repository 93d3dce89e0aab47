// A command as it lies in a socket, with its own copy of the texts; and what a node answers to it.
#pragma once

#include <redlock/nodes.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace redlock::sim {

class Letter {
public:
    /// `quarantine` is what its sender has in NodesOptions; it goes with every command.
    Letter(const Command& command, std::chrono::milliseconds quarantine)
        : command_(command), quarantine_(quarantine) {
        std::visit(
            [this](auto& own) {
                resources_.assign(own.resources.begin(), own.resources.end());
                owner_ = own.owner;
                own.resources = resources_;
                own.owner = owner_;
            },
            command_);
    }
    Letter(const Letter&) = delete;
    Letter& operator=(const Letter&) = delete;

    const Command& command() const noexcept { return command_; }
    std::string_view owner() const noexcept { return owner_; }
    std::chrono::milliseconds quarantine() const noexcept { return quarantine_; }
    bool claims() const noexcept { return acquires(command_); }
    bool erases() const noexcept { return std::holds_alternative<CompareAndDelete>(command_); }
    bool extends() const noexcept { return std::holds_alternative<CompareAndExpire>(command_); }

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
    struct Verb {
        std::string operator()(const SetIfAbsent&) const { return "set"; }
        std::string operator()(const SetAndCount&) const { return "set and count"; }
        std::string operator()(const RaiseCount& raise) const {
            return "raise to " + std::to_string(raise.fence);
        }
        std::string operator()(const CompareAndExpire& expire) const {
            return "extend to " + std::to_string(expire.ttl.count()) + " ms";
        }
        std::string operator()(const CompareAndDelete&) const { return "delete"; }
    };
    return std::visit(Verb{}, command);
}

}  // namespace redlock::sim
