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

// The release and the extension of the Redlock specification.
REDLOCK_EXPORT extern const Script compare_and_delete;
REDLOCK_EXPORT extern const Script compare_and_expire;

// The acquisition, the release and the extension of several resources. The first and the last are also used
// for one resource on a node with a quarantine.
REDLOCK_EXPORT extern const Script delete_all;
REDLOCK_EXPORT extern const Script expire_all;
REDLOCK_EXPORT extern const Script set_all;

// Fencing.
REDLOCK_EXPORT extern const Script set_and_count;
REDLOCK_EXPORT extern const Script raise_count;

// The queue of waiters (LockOptions::fair).
REDLOCK_EXPORT extern const Script delete_and_wake;
REDLOCK_EXPORT extern const Script enter_queue;
REDLOCK_EXPORT extern const Script leave_and_set;
REDLOCK_EXPORT extern const Script leave_and_count;

// Readers (LockOptions::shared).
REDLOCK_EXPORT extern const Script reader_acquire;
REDLOCK_EXPORT extern const Script reader_acquire_and_count;
REDLOCK_EXPORT extern const Script reader_extend;
REDLOCK_EXPORT extern const Script reader_release;
REDLOCK_EXPORT extern const Script reader_raise_count;

// The release before the minimum hold time is over, the description of a holder, and the two queries.
REDLOCK_EXPORT extern const Script hold_remaining;
REDLOCK_EXPORT extern const Script describe_holder;
REDLOCK_EXPORT extern const Script query;
REDLOCK_EXPORT extern const Script which_exist;

/// All scripts. The index of a script is its number.
inline constexpr std::size_t script_count = 20;
REDLOCK_EXPORT extern const std::array<const Script*, script_count> scripts;

/// Returns the number of a script.
inline std::size_t number_of(const Script* script) noexcept {
    std::size_t number = 0;
    while (scripts[number] != script) ++number;
    return number;
}

/// The beginning of the value of a resource that readers hold; mostly the whole value.
inline constexpr std::string_view shared_marker = "redlock:shared";

}  // namespace redlock::detail
