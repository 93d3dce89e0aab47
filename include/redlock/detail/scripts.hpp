// The Lua scripts that the nodes, which are N Redis masters, run. Each script is one atomic step on its node.
// The texts of the scripts are the .lua files in src/lua. Each file says which keys and arguments its script
// takes, and what it returns.
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

// The release and the extension of the Redlock specification. They are for one resource, if no other key is
// concerned.
REDLOCK_EXPORT extern const Script compare_and_delete;
REDLOCK_EXPORT extern const Script compare_and_expire;

// The general forms of the acquisition, the extension and the release. They are used for several resources,
// on nodes with a quarantine (the time for which a node that has lost its data does not vote,
// quarantine.hpp), and with the queue of waiters. `acquire` also counts the holders of a resource, which
// gives the lock its fencing token (fencing.hpp). `raise_counts` is the second round of fencing: it raises
// the counts of nodes that have counted fewer holders than others.
REDLOCK_EXPORT extern const Script acquire;
REDLOCK_EXPORT extern const Script extend;
REDLOCK_EXPORT extern const Script release;
REDLOCK_EXPORT extern const Script raise_counts;

// The same four for readers, which hold a resource together (LockOptions::shared).
REDLOCK_EXPORT extern const Script reader_acquire;
REDLOCK_EXPORT extern const Script reader_extend;
REDLOCK_EXPORT extern const Script reader_release;
REDLOCK_EXPORT extern const Script reader_raise_counts;

// The entry into the queue in which clients wait for a resource (*waiters*), the text that a holder leaves
// beside the lock for people to read, and the two queries.
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

/// The beginning of the value that a resource has while readers hold it. This is the whole value, with one
/// exception: if the name of the resource is in braces, as in `{x}`, the value is "redlock:shared-tag". Such
/// a resource has its readers under another key than in earlier versions of the library. The other value
/// makes clients of both versions exclude each other.
inline constexpr std::string_view shared_marker = "redlock:shared";

}  // namespace redlock::detail
