// Decides which connection to a node a command uses. The function is pure: it has no sockets and no clock.
// docs/glossary.md explains *group*, *current connection* and *clean-up*. pending_replies.hpp says which
// command must follow which, and write_choice.hpp when the command is written.
//
// The current connection *drains* in these cases:
//
// - The node times out in a round, on a connection that was ready (RoundDriver::leave()).
// - A reply has been missing for longer than node_timeout (Link::check_silence()).
// - choose_connection() demands a fresh connection in its place.
// - At the end, a device on the way may have forgotten it, or it is overdue (Link::leave_forgotten()).
#pragma once

#include "../wire/key_effect.hpp"

#include <chrono>
#include <cstdint>

namespace redlock::detail {

/// The detail in the report of a node whose connection was not ready in time.
inline constexpr auto* while_connecting = "while connecting";
/// The detail in the report of a node that is not asked because the command could overtake another one.
inline constexpr auto* earlier_is_pending = "an earlier command of its owner is still pending";
/// A connection that is in the making for longer is replaced for the next command that is no clean-up.
inline constexpr std::chrono::seconds max_connecting{1};

/// The situation in which a command is to be sent.
struct ConnectionSituation {
    KeyEffect effect{};
    /// A draining connection has an unanswered command that this clean-up must follow (pending_replies.hpp).
    /// Another command would not be sent.
    bool follows_draining = false;
    /// The state of the current connection. One that is made slowly has been in the making for an eighth of
    /// node_timeout. An overdue one has been in the making for max_connecting, or leads to a server that may
    /// be a former master. An outdated one may lead there, too, but was ready and awaits no reply. So no
    /// other command than a clean-up must follow a command on an overdue or outdated one.
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

}  // namespace redlock::detail
