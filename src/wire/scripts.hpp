// The Lua scripts that run on the nodes. Each script is one atomic step on its node. The text of each script
// is a .lua file in src/wire/lua. The file says which keys and arguments the script takes, and what it
// returns. The build puts the functions that it calls in front of it, from prelude.lua and quarantine.lua.
#pragma once

#include <redlock/export.hpp>

#include <algorithm>
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

// The release and the extension of the Redlock specification. They are for one resource, and use no key but
// this one: no counter, no queue and no marker. The acquisition of this kind needs no script, because it is
// the command SET NX PX.
REDLOCK_EXPORT extern const Script compare_and_delete;
REDLOCK_EXPORT extern const Script compare_and_expire;

// The general forms of the acquisition, the extension and the release. They are used for several resources,
// on nodes with a quarantine, with the queue of waiters, and with fencing, of which `raise_counts` is the
// second round.
REDLOCK_EXPORT extern const Script acquire;
REDLOCK_EXPORT extern const Script extend;
REDLOCK_EXPORT extern const Script release;
REDLOCK_EXPORT extern const Script raise_counts;

// The same four for readers, which hold a resource together (LockOptions::shared).
REDLOCK_EXPORT extern const Script reader_acquire;
REDLOCK_EXPORT extern const Script reader_extend;
REDLOCK_EXPORT extern const Script reader_release;
REDLOCK_EXPORT extern const Script reader_raise_counts;

// The other scripts. `enter_queue` puts a waiter into the queue of a resource. `describe_holder` writes the
// description of a holder. `query` reads the state of one resource, and `exist` only which of several
// resources exist.
REDLOCK_EXPORT extern const Script enter_queue;
REDLOCK_EXPORT extern const Script describe_holder;
REDLOCK_EXPORT extern const Script query;
REDLOCK_EXPORT extern const Script exist;

/// All scripts. The index of a script is its number: a connection has one bit for each number, which says
/// whether the server knows the script.
inline constexpr std::size_t count = 14;
REDLOCK_EXPORT extern const std::array<const Script*, count> all;

}  // namespace scripts

/// Returns the number of a script, which must be one of scripts::all.
inline std::size_t number_of(const Script* script) noexcept {
    return static_cast<std::size_t>(std::ranges::find(scripts::all, script) - scripts::all.begin());
}

/// The value of a resource while readers hold it. If the name of the resource is in braces, as in `{x}`, the
/// value is "redlock:shared-tag" instead. Earlier versions of the library keep the readers of such a resource
/// under another key, and use the value "redlock:shared". Because the two values differ, a client of an
/// earlier version and a client of this version cannot hold such a resource together.
inline constexpr std::string_view shared_marker = "redlock:shared";

}  // namespace redlock::detail
