// Decides which connection to a node a command uses, when the command may be passed to it, and when its bytes
// are written. The functions are pure: they have no sockets and no clock. docs/glossary.md explains *lane*,
// *current connection*, *clean-up* and *collect*. pending_replies.hpp says which command must follow which.
//
// The current connection *drains* in these cases:
//
// - The node times out in a round, on a connection that was ready (RoundDriver::leave()).
// - A reply has been missing for longer than node_timeout (Node::check_silence()).
// - choose_connection() demands a fresh connection in its place.
#pragma once

#include "../wire/key_effect.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redlock::detail {

/// The largest number of pending commands on a shared connection. Beyond it, a round waits within its own
/// deadline. Clean-ups count, but are written nevertheless.
inline constexpr std::size_t max_shared_pending = 1024;
/// The largest number of commands, and about the largest number of bytes, that are collected for one write.
/// The rounds with a place in an event loop (RoundPlaces) fit in one write, even with digests of scripts.
inline constexpr std::size_t max_collected_commands = 512;
inline constexpr std::size_t max_collected_bytes = 131'072;
/// The longest time for which a command is collected, even if the server sends no replies.
inline constexpr std::chrono::milliseconds max_collecting{1};
/// If Sentinels name the server: the time of silence after which they may have named another one
/// (may_write()).
inline constexpr std::chrono::seconds max_sentinel_silence{1};
/// The text of the error with which such a connection is disconnected.
inline constexpr auto* may_be_former = "may be a former master's";
/// The detail in the report of a node whose connection was not ready in time.
inline constexpr auto* while_connecting = "while connecting";
/// The detail in the report of a node that is not asked because the command could overtake another one.
inline constexpr auto* earlier_is_pending = "an earlier command of its owner is still pending";
/// The shortest time without a reply after which a device on the way may have forgotten a connection. Such
/// devices do so after minutes.
inline constexpr std::chrono::seconds min_silence{1};
/// A connection that is in the making for longer is replaced for the next command that is no clean-up.
inline constexpr std::chrono::seconds max_connecting{1};

// ---- The choice of a connection

/// The situation in which a command is to be sent.
struct ConnectionSituation {
    KeyEffect effect{};
    /// A draining connection has an unanswered command that this clean-up must follow (pending_replies.hpp).
    /// Another command would not be sent.
    bool follows_draining = false;
    /// The state of the current connection. One that is made slowly has been in the making for an eighth of
    /// node_timeout. An overdue one has been in the making for max_connecting, or leads to a server that may
    /// be a former master. An outdated one may lead there, too, but was ready and awaits no reply.
    enum class Current : std::uint8_t {
        none,
        in_the_making,
        made_slowly,
        overdue,
        ready,
        outdated
    } current{};
    bool trusted = true;  ///< The node is expected to answer in time (node_health.hpp).
    bool probe = false;   ///< An untrusted node may be asked, because its probe is due or the round needs it.
};

struct ConnectionChoice {
    enum class Connection : std::uint8_t {
        none,      ///< The node is left alone, because it is not trusted.
        draining,  ///< The draining connection that the command must follow.
        current,
        fresh  ///< A new connection, which replaces the current one.
    } connection{};
    /// The round should await the node as it awaits a trusted one (quorum_round.hpp).
    bool worth_waiting_for = false;

    bool operator==(const ConnectionChoice&) const = default;
};

/// Returns the choice of the first row that applies:
///
///     command         | situation                          | connection | worth waiting for
///     ----------------+------------------------------------+------------+----------------------------
///     a clean-up      | follows a draining connection      | draining   | if the node is trusted
///     another command | untrusted, and no probe            | none       |
///     a deletion      | untrusted, no current connection   | none       |
///     any             | no current connection              | fresh      | if trusted, or for a clean-up
///     another command | current is overdue or outdated     | fresh      | if trusted
///     a clean-up      | current is made slowly or overdue  | current    |
///     any             | otherwise                          | current    | if trusted
///
/// A clean-up does not wait for a connection that is made slowly, because an earlier round has done so. A
/// *deletion* is the clean-up of a holder description.
constexpr ConnectionChoice choose_connection(const ConnectionSituation& in) noexcept {
    using enum ConnectionSituation::Current;
    using Connection = ConnectionChoice::Connection;
    const bool release = cleans_up(in.effect);
    if (in.follows_draining) return {Connection::draining, in.trusted};
    if (!release && !in.trusted && !in.probe) return {Connection::none, false};
    if (in.effect == KeyEffect::undescribes && !in.trusted && in.current == none)
        return {Connection::none, false};
    if (in.current == none) return {Connection::fresh, in.trusted || release};
    if (!release && (in.current == overdue || in.current == outdated)) return {Connection::fresh, in.trusted};
    const bool slow = in.current == made_slowly || in.current == overdue;
    return {Connection::current, in.trusted && !(release && slow)};
}

// ---- When a command may be passed to its connection, and when it is written

/// The state of a shared connection for which a command waits.
struct WriteSituation {
    KeyEffect effect{};
    bool established = false;  ///< Bytes can reach the server.
    bool ready = false;        ///< The server has answered the handshake.
    bool drains = false;
    bool others_wait = false;     ///< Commands of other rounds have waited for longer.
    std::size_t pending = 0;      ///< commands without a reply
    std::size_t outstanding = 0;  ///< those of them that are not collected
    bool has_sentinels = false;
    std::chrono::nanoseconds silence{};  ///< the time since Connection::since(), the last sign of life
};

/// Returns true if the command may be passed to the connection. A clean-up only needs an established
/// connection, because it does no harm if it is executed late. Other commands need a connection that is
/// ready, does not drain, and has room.
///
/// These others go in order, except for the writing of a holder description, because its round does not wait.
/// The description ends with the lease, so it does no harm either if it is written late.
///
/// If Sentinels name the server, a command that goes in order is not written behind an outstanding one, nor
/// after a second of silence. The server may be a former master that was frozen. It would execute the command
/// later, when the lease has expired. All commands that wait when the last reply arrives go in the same
/// write.
constexpr bool may_write(const WriteSituation& in) noexcept {
    if (cleans_up(in.effect)) return in.established;
    if (!in.ready || in.drains || in.pending >= max_shared_pending) return false;
    if (in.effect == KeyEffect::describes) return true;
    if (in.others_wait) return false;
    return !in.has_sentinels || (in.outstanding == 0 && in.silence < max_sentinel_silence);
}

/// Returns true if the collected commands are written now: if no reply is outstanding, if a reply has come
/// since the last write, or if the first of them has waited for max_collecting. A draining connection does
/// not collect.
constexpr bool writes_now(std::size_t outstanding, bool has_replied, std::chrono::nanoseconds waited,
                          bool drains) noexcept {
    return outstanding == 0 || has_replied || waited >= max_collecting || drains;
}

}  // namespace redlock::detail
