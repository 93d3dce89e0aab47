// What goes over the wire: the commands of a round in RESP.
#pragma once

#include <redlock/nodes.hpp>

#include "redis/scripts.hpp"

#include <chrono>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace redlock::wire {

/// What a command depends on beside itself: the server that it is sent to.
struct Recipient {
    std::string_view run_id{};                ///< of this run of the server; empty while unknown
    std::chrono::milliseconds quarantine{0};  ///< see NodesOptions::quarantine
};

/// Whether `command` has to know the run of the server: to count, and to have a vote at all in a quarantine.
bool needs_run_id(const Command& command, const Recipient& recipient) noexcept;

/// The script that carries out `command`; none for a plain SET.
const Script* script_of(const Command& command, const Recipient& recipient) noexcept;

/// The key that counts the holders of `resource` on that run of a server. In braces is what Redis Cluster
/// hashes: the counter stays with its resource.
std::string counter_of(std::string_view resource, std::string_view run_id);

/// The key that tells since when that run of a server has had its data, in microseconds of its wall clock.
std::string marker_of(std::string_view run_id);

/// How a script is named on the wire.
enum class ScriptForm : bool {
    whole,   ///< EVAL with the text: works everywhere
    by_sha1  ///< EVALSHA: shorter, answered NOSCRIPT by a server that does not know it
};

/// Appends `command` to `out`.
void append(std::string& out, const Command& command, const Recipient& recipient, ScriptForm form);

/// Appends a command of plain words, such as AUTH or SELECT.
void append(std::string& out, std::span<const std::string_view> words);
inline void append(std::string& out, std::initializer_list<std::string_view> words) {
    append(out, std::span{words.begin(), words.size()});
}

}  // namespace redlock::wire
