// What stands under a resource on the nodes, and what that comes to. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>

namespace redlock::tool {

/// What stands there on one node.
struct KeyFacts {
    enum class State : std::uint8_t {
        unknown,  ///< the node did not answer, see cause
        free,     ///< nothing
        held,     ///< a text with an expiry: a lock, though perhaps not one of this library's
        no_lock,  ///< what no client's lock looks like: another type, or no expiry
    };

    std::string name{};  ///< of the node
    State state = State::unknown;
    std::string owner{};  ///< of a lock: its value, any bytes
    std::optional<std::chrono::milliseconds> expires_in{};
    std::string type{};  ///< of what is no lock
    std::optional<std::uint64_t> holders_counted{};
    std::error_code cause{};
    std::string detail{};
    std::chrono::nanoseconds took{};
};

/// What all of them together come to.
struct LockStatus {
    enum class Kind : std::uint8_t {
        held,       ///< one owner on a majority
        free,       ///< nothing on a majority
        split,      ///< neither, and the nodes that are silent could not change that
        uncertain,  ///< the nodes that are silent would decide
        no_quorum,  ///< no majority has answered
    };

    Kind kind = Kind::no_quorum;
    std::size_t nodes = 0;
    std::size_t answered = 0;
    std::string owner{};                                    ///< the one on the most nodes
    std::size_t no_locks = 0;                               ///< nodes whose key is none
    std::size_t held_on = 0;                                ///< and on how many
    std::optional<std::chrono::milliseconds> expires_in{};  ///< until it is on no majority; where held, and
                                                            ///< none: never
};

LockStatus lock_status_of(std::span<const KeyFacts> nodes);

/// Whether it is what this library signs with.
bool is_ours(const std::string& owner);

/// For a table: an owner of ours as it is, another value in quotes, printable and not too long.
std::string shown(const std::string& owner);

/// One line: "held by 1f... on 3 of 5 nodes, expires in 12.3 s".
std::string summary_of(const LockStatus& status);

/// "held", "free", "split", "uncertain", "no_quorum"; "unknown", "free", "held", "no_lock".
const char* name_of(LockStatus::Kind kind) noexcept;
const char* name_of(KeyFacts::State state) noexcept;

}  // namespace redlock::tool
