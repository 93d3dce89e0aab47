// Decides when a round may send a command, that is, pass it to its connection (connection_choice.hpp), and
// when its bytes are written. The functions are pure: they have no sockets and no clock. docs/glossary.md
// explains *clean-up* and *collect*.
#pragma once

#include "../wire/key_effect.hpp"

#include <chrono>
#include <cstddef>

namespace redlock::detail {

/// The largest number of pending commands on a connection of a group. Beyond it, a round waits within its own
/// deadline. Clean-ups count, but are written nevertheless.
inline constexpr std::size_t max_shared_pending = 1024;
/// The largest number of commands, and about the largest number of bytes, that are collected for one write.
/// The rounds with a place in an event loop (RoundPlaces) fit in one write, even with digests of scripts.
inline constexpr std::size_t max_collected_commands = 512;
inline constexpr std::size_t max_collected_bytes = 131'072;
/// The longest time for which a command is collected, even if the server sends no replies. If Sentinels name
/// the server, Link::holds_back() has an exception.
inline constexpr std::chrono::milliseconds max_collecting{1};
/// If Sentinels name the server: the time of silence after which they may have named another one
/// (may_send()).
inline constexpr std::chrono::seconds max_sentinel_silence{1};
/// The text of the error with which a connection that may lead to a former master is disconnected.
inline constexpr auto* may_be_former = "may be a former master's";

/// The state of the connection for which a command waits.
struct SendSituation {
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

/// Returns true if the command may be sent. A clean-up only needs an established connection, because it does
/// no harm if it is executed late. Other commands need a connection that is ready, does not drain, and has
/// room.
///
/// These others go in order, except for the writing of a holder description, because its round does not wait.
/// The description ends with the lease, so it does no harm either if it is written late.
///
/// If Sentinels name the server, a command that goes in order is not written behind an outstanding one, nor
/// after a second of silence. The server may be a former master that was frozen. It would execute the command
/// later, when the lease has expired. All commands that wait when the last reply arrives go in the same
/// write.
constexpr bool may_send(const SendSituation& in) noexcept {
    if (cleans_up(in.effect)) return in.established;
    if (!in.ready || in.drains || in.pending >= max_shared_pending) return false;
    if (in.effect == KeyEffect::describes) return true;
    if (in.others_wait) return false;
    return !in.has_sentinels || (in.outstanding == 0 && in.silence < max_sentinel_silence);
}

/// Returns true if the collected commands are written now: if no reply is outstanding, if a reply has come
/// since the last write, or if the first of them has waited for max_collecting. A draining connection does
/// not collect. (Link::holds_back() has an exception if Sentinels name the server.)
constexpr bool writes_now(std::size_t outstanding, bool has_replied, std::chrono::nanoseconds waited,
                          bool drains) noexcept {
    return outstanding == 0 || has_replied || waited >= max_collecting || drains;
}

}  // namespace redlock::detail
