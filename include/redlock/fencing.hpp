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
// How the token is chosen: each node counts the holders of each resource, and a grant comes with its count.
// The token is the largest count among the grants, as soon as a majority of the nodes has counted that far.
// If too few nodes returned exactly this count, a second round raises the counts of the others. Only nodes
// that still hold our key take part in it. The next holder needs a grant of one of this majority, so its
// token is larger:
//
//     counts 7 7 7    a majority has counted 7: token 7, one round
//     counts 7 9 8    token 9; the second round raises the others to 9
//
// A count can be far ahead of the clocks of the other nodes, because of an error or a forgery. It would
// exceed all counts with which restarted nodes begin for a long time. Nodes therefore refuse to be raised to
// it. Then the node that returned it has no vote, and the next largest count is the token.
//
// A node that restarts begins a new count. It begins with the wall clock in microseconds, which is larger
// than every count that the node can have returned before. docs/guarantees.md states the conditions for that.
#pragma once

#include <redlock/nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace redlock::algorithm {

/// Returns the largest count that came with a grant: the token, if the round stands.
inline std::uint64_t largest_count(const Tally& tally) {
    std::uint64_t result = 0;
    for (const auto& node : tally.reports())
        if (node.vote == Vote::granted) result = std::max(result, node.count);
    return result;
}

/// Returns the nodes that granted with exactly the count `fence`, which is the largest: all other nodes have
/// not counted that far.
inline NodeSet nodes_that_counted(const Tally& tally, std::uint64_t fence) {
    NodeSet result;
    for (std::size_t node = 0; node < tally.size(); ++node)
        result[node] = tally[node].vote == Vote::granted && tally[node].count == fence;
    return result;
}

/// Returns true if the node refused to raise its counts because the token is far ahead of its clock.
inline bool own_count_in_refusal(const NodeReport& node) {
    return node.vote == Vote::refused && node.count > 0;
}

/// Corrects the votes after a round that did not raise the counts of a majority. A node that has reported its
/// own count gets this count, because it may have counted further since its grant. A node that has lost our
/// key no longer grants.
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

}  // namespace redlock::algorithm
