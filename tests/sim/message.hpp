// A command as it is on the wire: what it is, for the log and for the checker.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "support/script_calls.hpp"

namespace redlock::sim {

using Words = std::vector<std::string>;

using support::argument;
using support::script_of;

/// Who signed it; empty if it is no command of a lock.
inline std::string_view owner_of(const Words& words) {
    if (script_of(words)) return argument(words, 1);
    return words.size() == 6 && words[0] == "SET" ? std::string_view{words[2]} : std::string_view{};
}

/// Returns the keys of a command of a lock.
inline std::vector<std::string> keys_of(const Words& words) {
    if (words[0] == "SET") return {words[1]};
    if (words[0] != "EVAL" && words[0] != "EVALSHA") return {};
    return {words.begin() + 3, words.begin() + 3 + std::stol(words[2])};
}

/// Returns whether the command runs one of the scripts.
inline bool runs(const Words& words, std::initializer_list<const detail::Script*> scripts) {
    const auto* const script = script_of(words);
    return script && std::ranges::find(scripts, script) != scripts.end();
}

/// Returns whether the command extends the life of a key.
inline bool extends(const Words& words) {
    using namespace detail::scripts;
    return runs(words, {&compare_and_expire, &extend, &reader_extend});
}

/// Returns whether the command makes a key.
inline bool sets(const Words& words) {
    using namespace detail::scripts;
    if (!script_of(words)) return !owner_of(words).empty();
    return runs(words, {&acquire, &reader_acquire});
}

/// Returns whether the command deletes a key.
inline bool releases(const Words& words) {
    using namespace detail::scripts;
    return runs(words, {&compare_and_delete, &release, &reader_release});
}

/// Returns whether the command writes or deletes a holder description.
inline bool describes(const Words& words) {
    return runs(words, {&detail::scripts::describe_holder});
}

/// Returns the command for the log: "set", "extend to 300 ms" ...
inline std::string text(const Words& words) {
    using namespace detail::scripts;
    if (!script_of(words)) return words[0];
    const bool is_release = runs(words, {&release});
    const std::string amount{argument(words, runs(words, {&compare_and_expire}) ? 2 : 3)};
    if (is_release && !amount.empty()) return "hold for another " + amount + " ms";
    if (is_release && !argument(words, 5).empty()) return "delete and wake";
    if (runs(words, {&enter_queue})) return "enter the queue";
    if (runs(words, {&reader_release})) return "leave the readers";
    if (runs(words, {&reader_acquire})) return "join the readers";
    if (describes(words)) return "describe the holder";
    if (runs(words, {&query, &exist})) return "query";
    if (releases(words)) return "delete";
    if (sets(words)) return "set";
    return (extends(words) ? "extend to " + amount + " ms" : "raise to " + amount);
}

}  // namespace redlock::sim
