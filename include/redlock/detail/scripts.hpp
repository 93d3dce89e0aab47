// The Lua scripts that the nodes run. Each script is one atomic step on its node. Their texts are the .lua
// files in src/lua, each of which says which keys and arguments the script takes and what it returns.
#pragma once

#include <redlock/export.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace redlock::detail {

/// A Lua script as it is sent by EVAL, and the digest by which a server that has seen it knows it.
struct Script {
    std::string_view text;
    std::string_view sha1;
};

namespace scripts {

// The release and the extension of the Redlock specification: for one resource, if no other key is concerned.
REDLOCK_EXPORT extern const Script compare_and_delete;
REDLOCK_EXPORT extern const Script compare_and_expire;

// Their general forms, for several resources, with a quarantine, with a queue; and the second round of
// fencing.
REDLOCK_EXPORT extern const Script acquire;
REDLOCK_EXPORT extern const Script extend;
REDLOCK_EXPORT extern const Script release;
REDLOCK_EXPORT extern const Script raise_counts;

// The same for readers (LockOptions::shared).
REDLOCK_EXPORT extern const Script reader_acquire;
REDLOCK_EXPORT extern const Script reader_extend;
REDLOCK_EXPORT extern const Script reader_release;
REDLOCK_EXPORT extern const Script reader_raise_counts;

// The queue of waiters, the description of a holder, and the two queries.
REDLOCK_EXPORT extern const Script enter_queue;
REDLOCK_EXPORT extern const Script describe_holder;
REDLOCK_EXPORT extern const Script query;
REDLOCK_EXPORT extern const Script exist;

/// All scripts. The index of a script is its number.
inline constexpr std::size_t count = 14;
REDLOCK_EXPORT extern const std::array<const Script*, count> all;

}  // namespace scripts

/// Returns the number of a script.
inline std::size_t number_of(const Script* script) noexcept {
    std::size_t number = 0;
    while (scripts::all[number] != script) ++number;
    return number;
}

/// The beginning of the value of a resource that readers hold; mostly the whole value.
inline constexpr std::string_view shared_marker = "redlock:shared";

}  // namespace redlock::detail
