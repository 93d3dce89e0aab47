// Fencing tokens over N masters: numbers that grow from one holder of a resource to the next. The system that
// the lock protects uses them to reject the request of a former holder that arrives too late. An extension to
// the Redlock specification.
//
// What the protected system has to do:
//
//   1. Store the largest token that it has seen. Update it with every access, reads included.
//   2. Reject every access, reads included, whose token is smaller.
//
// Reads must show their token because otherwise an update can be lost:
//
//     A reads 100 with token 5     largest token seen: 5
//     A is suspended, its lease ends
//     B reads 100 with token 6     largest token seen: 6
//     A writes 110 with token 5    rejected, because 5 is smaller than 6
//     B writes 150 with token 6    accepted
//
// If B's read had not shown its token, A's write would have been accepted, and B would have overwritten it
// with a value that was computed without it. LockOptions::shared describes the rule for readers and writers.
//
// How the token is chosen: each node counts the holders of each resource, and a grant comes with the node's
// count. The token is the largest count among the grants, as soon as the counts of a majority of the nodes
// are at least as large. If fewer than a majority of the nodes have returned exactly this count, a second
// round raises the counts of the others. A node counts in this round only if it still holds the key of this
// client. The next holder needs a grant of one of the nodes of this majority, so its token is larger.
// Attempt::confirm_fencing_token() in src/flow/attempt.cpp has the steps and an example.
//
// A node that restarts begins a new count. The new count begins with the wall clock in microseconds, which is
// larger than every count that the node can have returned before. docs/guarantees.md states the conditions
// for that.
//
// By an error or a forgery, a node can return a count that is far ahead of all wall clocks. Suppose that
// other nodes raised their counts to it. Until the wall clocks had caught up, a node that restarts would then
// begin below the counts of the other nodes. Therefore a node refuses to raise its count to one that is ahead
// of its own wall clock by more than a day and twice the quarantine (NodesOptions::quarantine: the time for
// which a node has no vote after it lost its data). The node that returned the wrong count loses its vote,
// and the next largest count is the token.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>
#include <redlock/outcome.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace redlock::algorithm {

/// Returns the largest count that came with a grant. It becomes the token if a majority confirms it.
inline std::uint64_t largest_count(const Tally& tally) {
    std::uint64_t result = 0;
    for (const auto& node : tally.reports())
        if (node.vote == Vote::granted) result = std::max(result, node.count);
    return result;
}

/// Returns the nodes that granted with exactly the count `fence`. It is the largest count, so the counts of
/// all other nodes are smaller.
inline NodeSet nodes_that_counted(const Tally& tally, std::uint64_t fence) {
    NodeSet result;
    for (std::size_t node = 0; node < tally.size(); ++node)
        result[node] = tally[node].vote == Vote::granted && tally[node].count == fence;
    return result;
}

/// Returns true if the node refused to raise its counts because the token is too far ahead of its wall clock.
/// Only such a refusal comes with the node's own count.
inline bool own_count_in_refusal(const NodeReport& node) {
    return node.vote == Vote::refused && node.count > 0;
}

/// Counts these nodes as granting if their votes are unknown. They have returned exactly the count to which
/// the round has raised the others, so their counts need not be raised.
inline void grant_unasked(Tally& raised, const NodeSet& counted) {
    for (std::size_t node = 0; node < raised.size(); ++node)
        if (counted[node] && raised[node].vote == Vote::unknown) raised.grant(node);
}

/// Corrects the votes in `tally` after a round that did not raise the counts of a majority. If a node has
/// reported its own count, this count replaces the one that came with its grant. The two differ if other
/// readers of a shared lock were counted meanwhile. A node that has lost our key no longer grants.
inline void take_own_counts(Tally& tally, const Tally& raised) {
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (own_count_in_refusal(raised[node]))
            tally.grant(node, raised[node].count);
        else if (raised[node].vote == Vote::refused)
            tally.refuse(node);
}

/// Rejects the counts of these nodes, and with them their votes.
inline void reject_counts(Tally& tally, const NodeSet& nodes) {
    for (std::size_t node = 0; node < tally.size(); ++node) {
        if (!nodes[node]) continue;
        tally[node].detail = "counts " + std::to_string(tally[node].count) + ", far ahead of the other nodes";
        tally.mark_unknown(node, Errc::unexpected_reply);
    }
}

/// Copies the reports of nodes whose counts were rejected, because the later rounds did not ask them any
/// more.
inline void carry_over_rejections(const Tally& tally, Tally& raised) {
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (tally[node].cause == Errc::unexpected_reply && raised[node].cause == Errc::not_asked)
            raised[node] = tally[node];
}

/// Returns the outcome of a round that raised the counts of the nodes. It differs from outcome() in two
/// cases:
///
/// - `no_quorum` takes the place of `held_by_other`, because a refusal means here that the node no longer has
///   the key of this attempt, and not that another client holds the lock.
/// - `validity_exhausted` takes the place of `deadline` if the end of the validity came before the deadline
///   of the caller.
inline std::error_code outcome_of_confirmation(const RoundResult& round, const RoundLimits& limits) {
    const auto error = outcome(round, limits);
    if (error == Errc::held_by_other) return Errc::no_quorum;
    const bool callers = limits.deadline <= round.valid_until;
    return error == Errc::deadline && !callers ? Errc::validity_exhausted : error;
}

}  // namespace redlock::algorithm
