// Decides which connection to a node a command uses, if the round of the command has its connections for
// itself. A node is one of the N Redis masters that vote. A round sends one command to the nodes and counts
// their votes. (connection_choice.hpp decides the same for rounds that share connections.) The functions are
// pure: they have no sockets and no clock.
//
// A connection is in one of these states between two rounds (node.hpp):
//
//     state    | meaning
//     ---------+---------------------------------------------------------------------------------------------
//     idle     | It is ready, and no reply is pending on it.
//     draining | Replies are pending on it that no round takes any more; or it is still being made, and
//              | releases are queued on it.
//     probing  | It is being made, and no command is queued on it.
//
// Some commands must be sent behind an earlier one, on the same connection. While the reply to the earlier
// command is pending, its connection is *bound* (pending_replies.hpp):
//
//     pending command                | bound to           | commands that must follow
//     -------------------------------+--------------------+-----------------------------------------------
//     SET                            | its *owner*: the   | all commands of this owner, above all the
//                                    | value of the key   | release
//     writing a *description*, a     | the owner of the   | the deletion of the description
//     text for people, beside a lock | lock               |
//     enter_queue: a waiter enters   | the *ticket* of    | the acquisition that removes the ticket from
//     the queue                      | the waiter         | the queue
//
// The connection to *follow* is the one that is bound to the owner of the command. If there is none, and the
// command is an acquisition that removes a ticket, it is the one that is bound to this ticket.
#pragma once

#include <redlock/detail/verbs.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace redlock::detail {

/// The largest number of pending replies on a connection on which another command is sent, apart from a
/// release that must follow its SET. Otherwise a lock that is extended again and again would fill the memory
/// while the node is silent.
inline constexpr std::size_t max_own_pending = 32;

/// The situation in which a command is to be sent.
struct OwnSituation {
    KeyEffect effect{};
    bool has_sentinels = false;  ///< Sentinels name the server of the node.

    // ---- The health of the node (node_health.hpp)

    bool trusted = true;        ///< The node is expected to answer in time.
    bool replied_late = false;  ///< It has sent a late reply since it has failed.
    bool due = false;           ///< Its probe is due, or the outcome of the round depends on the node.

    // ---- The draining connections. One with max_own_pending replies counts only if the command must follow
    // on it.

    enum class Follow : std::uint8_t { none, with_room, full } follow{};
    bool behind_release = false;  ///< One is not bound, and has a pending release of the same resource.
    bool unbound = false;         ///< One is not bound and, for a release, was never ready.
    /// For a release: one that was ready is not bound. It may be dead without a sign.
    bool unbound_was_ready = false;
    /// One is being made and has releases queued. It is new if less than an eighth of node_timeout has passed
    /// since it was begun.
    enum class Queued : std::uint8_t { none, on_new, on_old } queued{};

    // ---- The other connections

    /// The idle connections. All were dropped if each of them was closed by the server or may lead to a
    /// former master. This takes system calls, so it is found out only after an idle connection was chosen.
    enum class Idle : std::uint8_t { none, some, all_dropped } idle{};
    bool probing = false;                ///< There is a probing connection.
    bool probing_hangs = false;          ///< It has been in the making for the longest pause of a back-off.
    bool probing_may_be_former = false;  ///< It may lead to a former master.
};

struct OwnChoice {
    enum class Connection : std::uint8_t {
        none,     ///< The node is left alone, because it is not trusted.
        refused,  ///< The node is not asked, because too many replies are pending behind the SET to follow.
        follow,   ///< The draining connection that the command must follow.
        behind_release,
        unbound,
        idle,
        queued,
        probing,
        fresh  ///< A new connection. If there is a probing one, it is dropped.
    } connection{};
    /// The round should await the node as it awaits a trusted one (quorum_round.hpp).
    bool worth_waiting_for = false;
    /// Late replies end the back-off of the node. They do so only if the node would be asked now in any case.
    /// Otherwise a node that is always late would delay every round.
    bool trusts_late_replies = false;
    bool begins_probe = false;  ///< The command is a probe, so the next one is due after a pause.

    bool operator==(const OwnChoice&) const = default;
};

/// Returns true if a command with this effect must not overtake an earlier release of the same resource,
/// because it would be refused while this client's own old key exists. If the deletion of a description
/// overtakes the release, the description stays, because the key still exists.
constexpr bool may_follow_release(KeyEffect effect) noexcept {
    return effect == KeyEffect::acquires || effect == KeyEffect::describes ||
           effect == KeyEffect::undescribes;
}

/// Returns true if the command must be sent behind a pending command on a draining connection.
constexpr bool must_follow(const OwnSituation& in) noexcept {
    const bool trusted = in.trusted || in.effect == KeyEffect::undescribes;
    return in.follow != OwnSituation::Follow::none ||
           (may_follow_release(in.effect) && trusted && in.behind_release);
}

namespace own_choice {

using Connection = OwnChoice::Connection;
using Follow = OwnSituation::Follow;
using Queued = OwnSituation::Queued;
using Idle = OwnSituation::Idle;

constexpr bool is_release(const OwnSituation& in) noexcept {
    return in.effect == KeyEffect::releases;
}

/// Rows 1 to 5 of the table below; nothing if none of them applies.
constexpr std::optional<OwnChoice> behind_a_pending_command(const OwnSituation& in) noexcept {
    const bool follows = in.follow != Follow::none;
    if (is_release(in) && follows) return OwnChoice{Connection::follow, in.trusted};
    if (is_release(in) || in.has_sentinels) return std::nullopt;
    if (in.follow == Follow::full) return OwnChoice{Connection::refused};
    if (follows) return OwnChoice{Connection::follow, in.trusted};
    if (may_follow_release(in.effect) && in.trusted && in.behind_release)
        return OwnChoice{Connection::behind_release, true};
    if (in.effect == KeyEffect::describes && in.idle == Idle::none && in.unbound)
        return OwnChoice{Connection::unbound};
    return std::nullopt;
}

/// Rows 6 to 9.
constexpr OwnChoice of_a_trusted_node(const OwnSituation& in) noexcept {
    if (in.idle == Idle::some) return {Connection::idle, true, in.due};
    if (is_release(in) && in.queued != Queued::none)
        return {Connection::queued, in.queued == Queued::on_new, in.due};
    if (in.probing && !in.probing_may_be_former) return {Connection::probing, true, in.due};
    return {Connection::fresh, true, in.due};
}

/// Rows 10 to 15.
constexpr OwnChoice of_an_untrusted_node(const OwnSituation& in) noexcept {
    if (is_release(in)) {
        if (in.idle == Idle::some) return {Connection::idle, false, in.due};
        if (in.unbound) return {Connection::unbound, false, in.due};
        if (!in.probing) return {Connection::fresh, !in.unbound_was_ready, in.due};
    } else if (!in.due) {
        return {Connection::none};
    }
    if (in.probing && !in.probing_hangs) return {Connection::probing, false, in.due, in.due};
    return {Connection::fresh, false, in.due, in.due};
}

/// The choice for the deletion of a description; see the second table below.
constexpr OwnChoice for_a_deletion(const OwnSituation& in) noexcept {
    if (in.follow != Follow::none) return {Connection::follow};
    if (in.behind_release) return {Connection::behind_release};
    if (in.idle == Idle::some) return {Connection::idle};
    if (in.unbound) return {Connection::unbound};
    if (!in.trusted) return {Connection::none};
    return {in.probing && !in.probing_may_be_former ? Connection::probing : Connection::fresh};
}

}  // namespace own_choice

/// Returns the choice of the first row that applies. If Sentinels name the server, rows 2 to 5 do not apply.
/// A server that has not answered yet may be a frozen former master, and no lease may depend on it. An
/// extension that overtakes its SET is only refused.
///
///        command          | situation                              | connection     | worth waiting for
///     ----+---------------+----------------------------------------+----------------+---------------------
///      1  | a release     | there is a connection to follow        | follow         | if the node is trusted
///      2  | another       | the connection to follow is full       | refused        |
///      3  | another       | there is a connection to follow        | follow         | if the node is trusted
///      4  | acquisition,  | trusted; a pending release of the same | behind_release | yes
///         | description   | resource, on a connection not bound    |                |
///      5  | description   | none is idle; a draining one is not    | unbound        |
///         |               | bound                                  |                |
///
/// From here on, a node counts as trusted if it has replied late and is due.
///
///      6  | any           | trusted; one is idle                   | idle           | yes
///      7  | a release     | trusted; releases are queued on one    | queued         | if that one is new
///      8  | any           | trusted; a probing one, which does not | probing        | yes
///         |               | lead to a former master                |                |
///      9  | any           | trusted; otherwise                     | fresh          | yes
///     10  | a release     | untrusted; one is idle                 | idle           |
///     11  | a release     | untrusted; a draining one is not bound | unbound        |
///         |               | and was never ready                    |                |
///     12  | a release     | untrusted; none is probing             | fresh          | unless one that was
///         |               |                                        |                | ready is not bound
///     13  | another       | untrusted; not due                     | none           |
///     14  | any           | untrusted; a probing one, which does   | probing        |
///         |               | not hang                               |                |
///     15  | any           | untrusted; otherwise                   | fresh          |
///
/// Rows 6 to 15 trust late replies if the node is due. Rows 14 and 15 begin a probe if it is due.
///
/// Row 7: the round of an earlier release has already waited for an older connection (case 3 in
/// quorum_round.hpp). Row 11: the node reads the release behind other commands when it answers again. Row 12:
/// a new connection is worth waiting for, because the failure may have concerned only the old one. If
/// a connection that was ready has pending replies, a round has already waited for the node. The
/// release begins no probe. Otherwise it would use up the probe if its reply came late, and the next
/// acquisition would leave the node alone for another pause.
///
/// The deletion of a description has a table of its own. It does no harm on a former master, begins no probe,
/// and is not awaited:
///
///     situation                                                  | connection
///     -----------------------------------------------------------+---------------
///     there is a connection to follow                            | follow
///     a pending release of the resource, on one not bound        | behind_release
///     one is idle                                                | idle
///     a draining one is not bound                                | unbound
///     untrusted                                                  | none
///     a probing one, which does not lead to a former master      | probing
///     otherwise                                                  | fresh
constexpr OwnChoice choose_own_connection(const OwnSituation& in) noexcept {
    if (in.effect == KeyEffect::undescribes) return own_choice::for_a_deletion(in);
    if (const auto choice = own_choice::behind_a_pending_command(in)) return *choice;
    const bool trusted = in.trusted || (in.replied_late && in.due);
    return trusted ? own_choice::of_a_trusted_node(in) : own_choice::of_an_untrusted_node(in);
}

}  // namespace redlock::detail
