// The meaning of a command on the wire, for the log and for the checker.
#pragma once

#include <redlock/detail/scripts.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::sim {

using Words = std::vector<std::string>;

/// Returns the script that the command runs, or null if it runs none.
inline const detail::Script* script_of(const Words& words) {
    if (words.size() < 3 || (words[0] != "EVAL" && words[0] != "EVALSHA")) return nullptr;
    const auto it = std::ranges::find_if(detail::scripts, [&](const detail::Script* script) {
        return words[1] == script->sha1 || words[1] == script->text;
    });
    return it == detail::scripts.end() ? nullptr : *it;
}

/// Returns an argument of the script that the command runs. Argument 1 is the owner.
inline std::string_view argument(const Words& words, std::size_t number) {
    const auto index = 2 + std::stoul(words[2]) + number;
    return index < words.size() ? std::string_view{words[index]} : std::string_view{};
}

/// Returns the owner in the command, or an empty text if the command belongs to no lock.
inline std::string_view owner_of(const Words& words) {
    if (script_of(words)) return argument(words, 1);
    return words.size() == 6 && words[0] == "SET" ? std::string_view{words[2]} : std::string_view{};
}

/// Returns true if the command extends the expiry of a key.
inline bool extends(const Words& words) {
    const auto* const script = script_of(words);
    return script == &detail::compare_and_expire || script == &detail::expire_all ||
           script == &detail::reader_extend;
}

/// Returns true if the command creates a key.
inline bool sets(const Words& words) {
    const auto* const script = script_of(words);
    if (!script) return !owner_of(words).empty();
    return script == &detail::set_all || script == &detail::set_and_count ||
           script == &detail::leave_and_set || script == &detail::leave_and_count ||
           script == &detail::reader_acquire || script == &detail::reader_acquire_and_count;
}

/// Returns true if the command deletes a key.
inline bool releases(const Words& words) {
    const auto* const script = script_of(words);
    return script == &detail::compare_and_delete || script == &detail::delete_all ||
           script == &detail::delete_and_wake || script == &detail::hold_remaining ||
           script == &detail::reader_release;
}

/// Returns a short description, such as "set" or "extend to 300 ms".
inline std::string text(const Words& words) {
    const auto* const script = script_of(words);
    if (!script) return words[0];
    if (script == &detail::delete_and_wake) return "delete and wake";
    if (script == &detail::enter_queue) return "enter the queue";
    if (script == &detail::reader_release) return "leave the readers";
    if (script == &detail::reader_acquire || script == &detail::reader_acquire_and_count)
        return "join the readers";
    if (script == &detail::describe_holder) return "note";
    if (script == &detail::query || script == &detail::which_exist) return "query";
    if (script == &detail::hold_remaining) return "rest for " + std::string{argument(words, 2)} + " ms";
    if (releases(words)) return "delete";
    if (sets(words)) return "set";
    const std::string amount{argument(words, 2)};
    return script == &detail::raise_count || script == &detail::reader_raise_count
               ? "raise to " + amount
               : "extend to " + amount + " ms";
}

}  // namespace redlock::sim
