// Fencing tokens over N masters: numbers that grow from one holder of a resource to the next, so that
// whatever the lock protects can refuse a holder that comes too late.
//
// Each node counts the holders of each resource; a grant comes with its count. The largest count among the
// grants that were seen is the token, once a majority of the nodes has counted that far: those that granted
// just that number, and, where they are too few, those that are raised to it in a second round, which only
// nodes take part in where the resource is still ours. The next holder is granted by one of this majority, so
// its token is larger:
//
//     counts 7 7 7    a majority has counted 7: token 7, one round
//     counts 7 9 8    token 9; the second round raises the others to 9
//
// A count far ahead of the other nodes' clocks, by an error or forged, would outrank all that they seed for a
// long time. They refuse to be raised to it; the node that came with it then has no vote, and the next
// largest count is the token.
//
// A node that restarts begins a count of its own, named after the run of the server and seeded with its wall
// clock in microseconds, which is larger than any count it can have given: see NodesOptions::quarantine for
// what this takes.
//
// A token helps only if the resource checks it: it must remember the largest it has seen and refuse smaller
// ones, and every access must show its token, reads included. If reads do not, an update can be lost: A reads
// with token 5 and pauses, B reads with 6, A writes, B writes. Both writes are in order, but B's was computed
// without A's; had B's read shown its 6, A's write would have been refused.
#pragma once

#include <redlock/nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace redlock::algorithm {

/// The token of the round: the largest count that came with a grant.
inline std::uint64_t largest_count(const Tally& tally) {
    std::uint64_t result = 0;
    for (const auto& node : tally.reports())
        if (node.vote == Vote::granted) result = std::max(result, node.count);
    return result;
}

/// The nodes whose grant came with just that count. Larger ones there are none, smaller ones have not counted
/// so far.
inline NodeSet nodes_that_counted(const Tally& tally, std::uint64_t fence) {
    NodeSet result;
    for (std::size_t node = 0; node < tally.size(); ++node)
        result[node] = tally[node].vote == Vote::granted && tally[node].count == fence;
    return result;
}

/// Whether a node refused to raise its counts because the fence is far ahead of its clock.
inline bool own_count_in_refusal(const NodeReport& node) {
    return node.vote == Vote::refused && node.count > 0;
}

/// After a round that raised no majority: what the nodes have said of their own counts in it takes the place
/// of what came with their grants, which may not have been seen. A node that has lost our key grants nothing.
inline void take_own_counts(Tally& tally, const Tally& raised) {
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (own_count_in_refusal(raised[node]))
            tally.grant(node, raised[node].count);
        else if (raised[node].vote == Vote::refused)
            tally.refuse(node);
}

/// The count of these nodes is rejected, and with it their vote.
inline void reject_counts(Tally& tally, const NodeSet& nodes) {
    for (std::size_t node = 0; node < tally.size(); ++node) {
        if (!nodes[node]) continue;
        tally[node].detail = "counts " + std::to_string(tally[node].count) + ", far ahead of the other nodes";
        tally.mark_unknown(node, Errc::unexpected_reply);
    }
}

/// Those whose counts were rejected before are not asked any more: the reports say why.
inline void carry_over_rejections(const Tally& tally, Tally& raised) {
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (tally[node].cause == Errc::unexpected_reply && raised[node].cause == Errc::not_asked)
            raised[node] = tally[node];
}

}  // namespace redlock::algorithm
