// What the votes of one round mean, for an attempt as well as for an extension: step 3 of the Redlock
// specification, and the error if the step fails. (src/flow/lease.cpp decides whether an extension shows that
// the lock is lost.)
#pragma once

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/nodes.hpp>
#include <redlock/result.hpp>

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>

namespace redlock::algorithm {

/// The votes on one request, and two instants.
struct RoundResult {
    Tally tally;
    Clock::time_point valid_until{};  ///< The end of the validity, if a majority has granted.
    Clock::time_point ended{};        ///< The end of the round.
};

/// Returns true if the attempt failed because of contention and not because of failed nodes: at least one
/// node has refused, and the nodes that did not fail still form a quorum. A node in back-off has failed, also
/// if the round did not ask it. The function also returns true if clients have collided, so that each of them
/// has got some votes and none a majority.
inline bool refused_by_holders(const Tally& tally) {
    const auto failed = std::ranges::count_if(tally.reports(), detail::failed_to_vote);
    return tally.refused() > 0 && tally.size() - static_cast<std::size_t>(failed) >= quorum(tally.size());
}

/// Returns true if the refusals alone make a majority impossible.
inline bool ruled_out(const Tally& tally) {
    return tally.size() - tally.refused() < quorum(tally.size());
}

/// Returns true if the caller's deadline left some node too little time to answer. The tally is incomplete
/// then.
inline bool cut_short(const Tally& tally) {
    return std::ranges::any_of(tally.reports(),
                               [](const NodeReport& node) { return node.cause == Errc::deadline; });
}

/// Returns no error if a majority of the configured nodes granted and the validity is not over; otherwise the
/// reason.
inline std::error_code outcome(const RoundResult& round, const RoundLimits& limits) {
    const auto& tally = round.tally;
    if (tally.granted() >= quorum(tally.size()))
        return round.ended < round.valid_until ? std::error_code{} : Errc::validity_exhausted;
    if (ruled_out(tally)) return Errc::held_by_other;
    if (limits.stop.stop_requested()) return Errc::cancelled;
    if (round.ended >= limits.deadline || cut_short(tally)) return Errc::deadline;
    return refused_by_holders(tally) ? Errc::held_by_other : Errc::no_quorum;
}

/// Returns the result of one round with this outcome. The remaining validity of the result is zero if there
/// is an error.
inline Result result_of(std::error_code error, RoundResult&& round) {
    const auto validity = error ? Clock::duration::zero() : round.valid_until - round.ended;
    return Result{error, std::move(round.tally), 1, validity};
}

}  // namespace redlock::algorithm
