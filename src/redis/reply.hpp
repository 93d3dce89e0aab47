// What comes back over the wire, and what it means as a vote.
#pragma once

#include <redlock/detail/quorum_round.hpp>
#include <redlock/nodes.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock::wire {

/// One reply of a server. Reused for the next, so that its text needs no memory of its own each time.
struct Reply {
    enum class Kind : std::uint8_t { none, status, error, nil, integer, text, list };
    Kind kind = Kind::none;
    long long integer = 0;
    std::string text{};  ///< of a list: its elements, one a line

    /// The first word alone tells errors apart: the rest differs between servers (rule D6).
    std::string_view first_word() const noexcept { return std::string_view{text}.substr(0, text.find(' ')); }
    bool is_error(std::string_view word) const noexcept {
        return kind == Kind::error && first_word() == word;
    }
};

/// The meaning of an error reply, by its first word (rule D7).
Errc cause_of(std::string_view first_word) noexcept;

/// The same of a whole reply. Servers report a command that a script may not run as a plain ERR.
Errc cause_of(const Reply& error) noexcept;

/// The vote that `reply` is on `command`. Only the status OK grants a plain SET, only nil refuses it; only 1
/// and 0 answer a script, or a count where that was asked for, a negative one where it refuses to be raised;
/// all else is unknown (rule A7).
detail::NodeVote to_vote(const Command& command, const Reply& reply, bool scripted) noexcept;

/// The value of a line of INFO, of which `name` has the colon, too; empty if there is no such line.
std::string_view line_of_info(std::string_view info, std::string_view name) noexcept;

/// A server's words for a report: one line, printable, not too long.
std::string printable(std::string_view words);

}  // namespace redlock::wire
