// What comes back over the wire, and what it means as a vote (to_vote()).
#pragma once

#include <redlock/error.hpp>
#include <redlock/nodes.hpp>

#include "causes.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock::detail {

/// One reply of a server. The object is used again for the next reply, so that its text keeps its memory.
struct Reply {
    enum class Kind : std::uint8_t { none, status, error, nil, integer, text, list };
    Kind kind = Kind::none;
    long long integer = 0;
    std::string text{};  ///< the text of a status, an error or a text; for a list, its elements in lines

    /// Returns the first word of the text. It distinguishes most errors, because the rest of the text differs
    /// between servers (rules D6 and D7 in docs/rules.md).
    std::string_view first_word() const noexcept { return std::string_view{text}.substr(0, text.find(' ')); }
    bool is_error(std::string_view word) const noexcept {
        return kind == Kind::error && first_word() == word;
    }
};

/// What a reply means as a vote. NodeReport in nodes.hpp explains the fields.
struct NodeVote {
    Vote vote = Vote::unknown;
    std::error_code cause{};
    std::uint64_t count = 0;
    QueuePlace place{};
    bool maybe_executed = true;  ///< false if the reply shows that the node has executed nothing
};

/// Returns the text before the first `separator`, and removes both from `rest`. Without a separator, returns
/// the whole text.
inline std::string_view cut_word(std::string_view& rest, char separator = ' ') noexcept {
    const auto word = rest.substr(0, rest.find(separator));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    return word;
}

/// Removes what a server before Redis 7 writes in front of the error of a command that a script calls. The
/// error then begins with its own first word:
///
///     ERR Error running script (call to f_1234): @user_script:1: @user_script: 1: -READONLY You can't write
inline void remove_place_in_script(std::string& error) {
    constexpr std::string_view place = "@user_script:";
    if (!error.starts_with("ERR Error running script ")) return;
    auto at = error.find(place);
    while (at != error.npos && error.compare(at, place.size(), place) == 0)
        at = error.find_first_not_of(" 0123456789:-", at + place.size());
    if (at != error.npos) error.erase(0, at);
}

/// Returns true if the server has too many clients, and therefore closes this new connection. It says so in
/// place of the reply to the first command, for example to AUTH. Servers of a Redis Cluster say "max number
/// of clients + cluster connections reached".
inline bool has_too_many_clients(const Reply& reply) noexcept {
    return reply.kind == Reply::Kind::error && reply.text.starts_with("ERR max number of clients ");
}

/// Returns true if the server has no command of this name, for example because rename-command has taken it
/// away. It says so in the text of a plain ERR.
inline bool is_unknown_command(const Reply& reply) noexcept {
    return reply.kind == Reply::Kind::error && reply.text.starts_with("ERR unknown command");
}

/// Returns the meaning of an error reply, by its first word or, if this is ERR, by the text. The error of a
/// script has the text of the command that it calls inside its own.
inline Errc cause_of(const Reply& error) noexcept {
    for (const auto& cause : causes)
        for (auto rest = cause.errors; !rest.empty();) {
            const auto text = cut_word(rest, '|');
            const bool is_word = text.find(' ') == text.npos;
            if (is_word ? error.first_word() == text : error.text.starts_with(text)) return cause.code;
        }
    const auto says = [&](std::string_view words) { return error.text.find(words) != std::string::npos; };
    if (says("can't run this command") || says("ACL failure in script")) return Errc::permission_denied;
    const bool lacks_command =
        says("Unknown Redis command called from") || says("Redis command is not allowed from script");
    return lacks_command ? Errc::server_error : Errc::unknown_error;
}

/// Returns the hint for an error reply that shows that the server is of another kind than its address says: a
/// server, a Sentinel, or a member of a Redis Cluster. Returns an empty text for all others.
inline std::string_view hint_for(const Reply& error) noexcept {
    if (error.is_error("MOVED")) return hints::cluster;
    if (error.text.starts_with("ERR This instance has cluster support")) return hints::no_cluster;
    if (!is_unknown_command(error)) return {};
    const auto names = [&](std::string_view command) { return error.text.find(command) != error.text.npos; };
    if (names("'SET'") || names("`SET`")) return hints::sentinel;
    return names("SENTINEL") ? hints::no_sentinel : std::string_view{};
}

/// Returns true if the server has not executed the command, because it runs a script that takes long, loads
/// its data, or is a server of a Redis Cluster that does not serve the hash slot or one of its keys. An
/// acquisition then needs no release, which the server would refuse as well.
inline bool executes_nothing(const Reply& reply) noexcept {
    return std::ranges::any_of(std::array{"BUSY", "LOADING", "TRYAGAIN", "CLUSTERDOWN", "MOVED", "ASK"},
                               [&](const char* word) { return reply.is_error(word); });
}

/// Returns the remaining time to live that a server has reported, but a century at most, so that it can be
/// added to an instant. Servers accept expiries that are longer than the clock can count, and a hostile
/// server may send any number. Returns −1 if the key has no expiry, and −2 if there is no key.
inline std::chrono::milliseconds to_expiry(long long milliseconds) noexcept {
    constexpr std::chrono::milliseconds century = std::chrono::hours{24 * 36'525};
    return std::clamp(std::chrono::milliseconds{milliseconds}, std::chrono::milliseconds{-2}, century);
}

/// Parses the whole text as a number. If the number is too large for its type, returns the largest one of the
/// type. Returns nothing if the text is no number.
template <class Number>
std::optional<Number> saturated_number(std::string_view text) noexcept {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
    if (error == std::errc{}) return number;
    return text.front() == '-' ? std::numeric_limits<Number>::min() : std::numeric_limits<Number>::max();
}

/// Parses the whole text as a number. Returns nothing if it is none, or larger than `most`.
template <class Number>
std::optional<Number> whole_number(std::string_view text,
                                   Number most = std::numeric_limits<Number>::max()) noexcept {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number > most) return std::nullopt;
    return number;
}

/// Returns the place of a waiter in the queue in which clients wait for a resource. Parses a reply such as
/// "WAITING 1200 3 holder": the key of the resource lives for at most 1200 ms, 3 waiters are in front, and a
/// holder has the resource. Returns nothing if the reply is anything else.
inline std::optional<QueuePlace> to_place(const Reply& reply) noexcept {
    using Held = QueuePlace::Held;
    std::string_view words{reply.text};
    if (reply.kind != Reply::Kind::status || cut_word(words) != "WAITING") return std::nullopt;
    const auto ttl = saturated_number<long long>(cut_word(words));
    const auto in_front = saturated_number<std::size_t>(cut_word(words));
    const bool known = words == "nothing" || words == "reservation" || words == "holder";
    if (!ttl || !in_front || !known) return std::nullopt;
    const auto held = words == "holder" ? Held::by_holder : Held::by_waiter;
    return QueuePlace{words == "nothing" ? Held::by_nobody : held, to_expiry(*ttl), *in_front};
}

/// Returns the vote of an error reply. An error leaves the vote unknown, with one exception (rule A7 in
/// docs/rules.md): WRONGTYPE, in reply to an extension or a release, is a refusal. But the WRONGTYPE of a
/// marker of the quarantine that is none (quarantine.lua), or of a foreign member among the readers
/// (prelude.lua), says nothing about the key.
inline NodeVote error_to_vote(const Command& command, const Reply& error) noexcept {
    const auto effect = effect_of(command);
    const bool needs_our_key = effect == KeyEffect::extends || effect == KeyEffect::releases;
    const bool is_about_the_key = error.is_error("WRONGTYPE") && !error.text.ends_with(" holds no marker") &&
                                  !error.text.ends_with(" holds no readers");
    const bool refused = needs_our_key && is_about_the_key;
    return {.vote = refused ? Vote::refused : Vote::unknown,
            .cause = cause_of(error),
            .maybe_executed = !executes_nothing(error)};
}

/// Returns the vote that a script has given by returning this number. ReplyForm in verbs.hpp describes the
/// numbers.
inline NodeVote number_to_vote(const Command& command, long long number) noexcept {
    const auto magnitude =
        number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    const auto form = properties_of(command.verb).reply;
    const bool counted = form == ReplyForm::count && number > 0;
    if (counted) return {Vote::granted, {}, magnitude};
    const bool too_far_ahead = form == ReplyForm::raised && number < 0;
    if (too_far_ahead) return {Vote::refused, {}, magnitude};
    const bool may_wake = form == ReplyForm::deleted && command.queue;
    if (may_wake && (number == 2 || number == 3)) return {number == 3 ? Vote::granted : Vote::refused, {}, 1};
    if (number == 1) return {Vote::granted};
    if (number == 0) return {Vote::refused};
    return {Vote::unknown, Errc::unexpected_reply};
}

inline NodeVote status_to_vote(const Command& command, const Reply& status, bool scripted) noexcept {
    const bool queues = scripted && properties_of(command.verb).reply == ReplyForm::queue_place;
    if (status.text == "OK" && !scripted) return {Vote::granted};
    if (status.first_word() == "QUARANTINED" && scripted) return {Vote::unknown, Errc::quarantined};
    if (status.text == "RESERVED" && queues) return {Vote::granted};
    if (status.text == "UNSUBSCRIBED" && queues) return {Vote::unknown, Errc::lost};
    const auto place = queues ? to_place(status) : std::nullopt;
    if (place) return {.vote = Vote::refused, .place = *place};
    return {Vote::unknown, Errc::unexpected_reply};
}

/// Returns the vote that `reply` is on `command`. `scripted` is true if the command was sent as a script.
///
///     command               | granted            | refused
///     ----------------------+--------------------+---------------------------------------
///     a plain SET           | the status OK      | nil
///     a script              | a number           | a number (see ReplyForm in verbs.hpp)
///     a waiter's question   | RESERVED           | WAITING and the place in the queue
///     a query               | any text           |
///     an extension, release |                    | WRONGTYPE (see error_to_vote())
///
/// UNSUBSCRIBED is an unknown vote with the cause `lost`: the server does not know the subscription of the
/// waiter. All other replies are unknown votes (rule A7 in docs/rules.md).
inline NodeVote to_vote(const Command& command, const Reply& reply, bool scripted) noexcept {
    using Kind = Reply::Kind;
    if (reply.kind == Kind::error) return error_to_vote(command, reply);
    if (reply.kind == Kind::status) return status_to_vote(command, reply, scripted);
    if (reply.kind == Kind::nil && !scripted) return {Vote::refused};
    const auto form = properties_of(command.verb).reply;
    if (reply.kind == Kind::text && form == ReplyForm::text) return {Vote::granted};
    const bool answered_in_words = form == ReplyForm::text || form == ReplyForm::queue_place;
    const bool number = reply.kind == Kind::integer && scripted && !answered_in_words;
    return number ? number_to_vote(command, reply.integer) : NodeVote{Vote::unknown, Errc::unexpected_reply};
}

/// Returns the value of the line of INFO that begins with `name`, which includes the colon. Returns an empty
/// text if there is no such line.
inline std::string_view line_of_info(std::string_view info, std::string_view name) noexcept {
    while (!info.starts_with(name)) {
        const auto end = info.find('\n');
        if (end == info.npos) return {};
        info.remove_prefix(end + 1);
    }
    info.remove_prefix(name.size());
    return info.substr(0, info.find_first_of("\r\n"));
}

/// Returns the words of a server in a form that a report can show: in one line, printable, and not too long.
inline std::string printable(std::string_view words) {
    constexpr std::size_t longest = 120;
    std::string result{words.substr(0, longest)};
    std::ranges::replace_if(
        result, [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
    if (words.size() > longest) result += "...";
    return result;
}

/// Returns true if the texts have a run of three letters in common, in whatever case.
inline bool have_a_run_in_common(std::string_view text, std::string_view other) noexcept {
    constexpr std::size_t run = 3;
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
    const auto has = [&](std::string_view part) {
        return std::search(text.begin(), text.end(), part.begin(), part.end(),
                           [&](char a, char b) { return lower(a) == lower(b); }) != text.end();
    };
    for (std::size_t i = 0; i + run <= other.size(); ++i)
        if (has(other.substr(i, run))) return true;
    return !other.empty() && other.size() < run && has(other);
}

/// Returns the part of an error that a report may show. The server has sent the error in place of the reply
/// to AUTH with this password, which the text may repeat, also in part or in other letters. The first row
/// that applies decides:
///
///     text                                                   | shown
///     -------------------------------------------------------+----------------
///     has no run in common with the password, apart from the | the whole text
///     first word                                             |
///     begins with known words of Redis                       | these words
///     any other                                              | the first word
inline std::string_view shown_after_auth(std::string_view text, std::string_view password) noexcept {
    constexpr std::array known{
        std::string_view{"ERR AUTH <password> called without any password configured"},
        std::string_view{"ERR Client sent AUTH, but no password is set"},
        std::string_view{"ERR invalid password"},
        std::string_view{"ERR wrong number of arguments for 'auth' command"},
        std::string_view{"WRONGPASS invalid username-password pair or user is disabled"},
        std::string_view{"DENIED Redis is running in protected mode"},
    };
    const auto first_word = text.substr(0, text.find(' '));
    if (!have_a_run_in_common(text.substr(first_word.size()), password)) return text;
    for (const auto& words : known)
        if (text.starts_with(words)) return words;
    return first_word;
}

}  // namespace redlock::detail
