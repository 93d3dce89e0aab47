// What goes over the wire: the commands of a round in RESP, and the page's scripts.
#pragma once

#include <redlock/nodes.hpp>

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

namespace redlock::wire {

/// A Lua script and the name under which a server that has seen it knows it.
struct Script {
    std::string_view text;
    std::string_view sha1;
};

/// The page's release: delete only if the value is still ours (S8).
inline constexpr Script compare_and_delete{
    "if redis.call('get',KEYS[1]) == ARGV[1] then "
    "return redis.call('del',KEYS[1]) "
    "else return 0 end",
    "ae3671744a5dbb24ea37ef607b8b10ac7856d43e"};

/// The page's extension (S31), which never shortens: a late one must not undo a longer one.
inline constexpr Script compare_and_expire{
    "if redis.call('get',KEYS[1]) == ARGV[1] then "
    "if redis.call('pttl',KEYS[1]) < tonumber(ARGV[2]) then redis.call('pexpire',KEYS[1],ARGV[2]) end "
    "return 1 "
    "else return 0 end",
    "c8140c4860286b83b82bb0cd9431d09f0be019e3"};

/// The script that carries out `command`; none for a plain SET.
const Script* script_of(const Command& command) noexcept;

/// The ttl that `command` gives to a key; zero if it gives none.
std::chrono::milliseconds ttl_of(const Command& command) noexcept;

/// The value that signs `command`.
std::string_view owner_of(const Command& command) noexcept;

/// How a script is named on the wire.
enum class ScriptForm : bool {
    whole,   ///< EVAL with the text: works everywhere
    by_sha1  ///< EVALSHA: shorter, answered NOSCRIPT by a server that does not know it
};

/// Appends `command` to `out`.
void append(std::string& out, const Command& command, ScriptForm form);

/// Appends a command of plain words, such as AUTH or SELECT.
void append(std::string& out, std::initializer_list<std::string_view> words);

}  // namespace redlock::wire
