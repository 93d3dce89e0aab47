// Fencing tokens (LockOptions::fencing): numbers that grow from one holder of a resource to the next. The
// *protected system*, such as a database that the holders change, uses them to reject a former holder that
// comes too late. They are an extension to the Redlock specification.
//
// The protected system has to do two things:
//
//   1. Store the largest token that it has seen, in any access, reads included.
//   2. Reject every access, reads included, whose token is smaller.
//
// Reads must show their token because otherwise an update can be lost:
//
//     A reads 100 with token 5     largest token seen: 5
//     A is suspended, its lock ends
//     B reads 100 with token 6     largest token seen: 6
//     A writes 110 with token 5    rejected, because 5 is smaller than 6
//     B writes 150 with token 6    accepted
//
// If B's read had not shown its token, A's write would have been accepted, and B would have overwritten it
// with a value that was computed without it. For readers and writers (LockOptions::shared) there is another
// rule.
//
// How the token is chosen: each node counts the holders of a resource, and grants a lock with its new count.
// The token is the largest of these counts. A later holder must get a larger one, so a majority of the nodes
// must have counted up to the token:
//
//     the nodes grant with the counts   then
//     7 7 7                             a majority has counted 7, so the token is 7
//     7 9 8                             a second round raises the other counts to 9, so the token is 9
//
// The next holder needs grants of a majority. At least one of these nodes has counted up to the token, so the
// next count is larger. A node raises its count only if it still has the key of this client.
//
// A node that restarts begins a new count with its wall clock in microseconds. To make sure that this is
// larger than all earlier counts, set NodesOptions::quarantine to more than the wall clocks of the nodes can
// differ.
//
// A node can return a wrong count, by an error or a forgery, that is far ahead of all wall clocks. If the
// others raised their counts to it, a restarted node would begin below them. Therefore a node refuses to
// raise its count to one that is ahead of its own wall clock by more than a day and twice
// NodesOptions::quarantine. The node with the wrong count then loses its vote, and the next largest count is
// the token. This takes one more round for each such node.
//
// Attempt::confirm_fencing_token() in src/flow/attempt.cpp has the steps. The functions below are parts of
// it. `tally` has the votes of the round that acquired, and `raised` those of a round that raised the counts.
#pragma once

#include <redlock/algorithm/outcome.hpp>
#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace redlock::algorithm {

/// Returns the largest count that came with a grant. It is the token, unless other nodes refuse it.
inline std::uint64_t largest_count(const Tally& tally) {
    std::uint64_t result = 0;
    for (const auto& node : tally.reports())
        if (node.vote == Vote::granted) result = std::max(result, node.count);
    return result;
}

/// Returns the nodes that granted with the count `fence`.
inline NodeSet nodes_that_counted(const Tally& tally, std::uint64_t fence) {
    NodeSet result;
    for (std::size_t node = 0; node < tally.size(); ++node)
        result[node] = tally[node].vote == Vote::granted && tally[node].count == fence;
    return result;
}

/// Returns true if the node refused to raise its count because the token is too far ahead of its wall clock.
/// Only such a refusal comes with the node's own count.
inline bool own_count_in_refusal(const NodeReport& node) {
    return node.vote == Vote::refused && node.count > 0;
}

/// Counts unknown votes of these nodes as grants. Their counts are already what the round raises counts to.
inline void grant_unknown(Tally& raised, const NodeSet& counted) {
    for (std::size_t node = 0; node < raised.size(); ++node)
        if (counted[node] && raised[node].vote == Vote::unknown) raised.grant(node);
}

/// Corrects the votes in `tally` after nodes have refused the token. If a node has reported its own count,
/// this count replaces the one that came with its grant. (They can differ if the lock is shared, because the
/// node may have counted other readers meanwhile.) A node that has lost the key of this client no longer
/// grants.
inline void take_own_counts(Tally& tally, const Tally& raised) {
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (own_count_in_refusal(raised[node]))
            tally.grant(node, raised[node].count);
        else if (raised[node].vote == Vote::refused)
            tally.refuse(node);
}

/// Rejects the votes of these nodes, because their counts are wrong.
inline void reject_counts(Tally& tally, const NodeSet& nodes) {
    for (std::size_t node = 0; node < tally.size(); ++node) {
        if (!nodes[node]) continue;
        tally[node].detail = "counts " + std::to_string(tally[node].count) + ", far ahead of the other nodes";
        tally.mark_unknown(node, Errc::unexpected_reply);
    }
}

/// Copies the reports of the rejected nodes, which the last round did not ask.
inline void carry_over_rejections(const Tally& tally, Tally& raised) {
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (tally[node].cause == Errc::unexpected_reply && raised[node].cause == Errc::not_asked)
            raised[node] = tally[node];
}

/// Returns the outcome of a round that raised the counts of the nodes. It differs from outcome() in two
/// cases:
///
/// - Refusals make it `no_quorum` and not `held_by_other`. A node refuses here if it no longer has the key.
/// - If the validity ended before the deadline of the caller, it is `validity_exhausted` and not `deadline`.
inline std::error_code outcome_of_confirmation(const RoundResult& round, const RoundLimits& limits) {
    const auto error = outcome(round, limits);
    if (error == Errc::held_by_other) return Errc::no_quorum;
    const bool callers = limits.deadline <= round.valid_until;
    return error == Errc::deadline && !callers ? Errc::validity_exhausted : error;
}

}  // namespace redlock::algorithm
