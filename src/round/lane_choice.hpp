// Decides which lane the round of a thread uses. The threads of a process have several lanes (lanes.hpp): one
// that rounds *share*, whose leading thread makes the rounds of all (lane.hpp), and others that one round has
// for itself at a time.
//
// Few threads are faster with a lane for each round, because they work in parallel. If many ask at the same
// time, sharing is cheaper: the commands of many rounds go out in one write, and are answered together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace redlock::detail {

/// Sharing ends after this number of rounds in a row that began while no more rounds than processors were
/// under way.
inline constexpr unsigned rounds_until_alone = 64;

/// What is known when a round begins.
struct LaneSituation {
    /// A command that this one must not overtake is unanswered on a lane. False for the extensions of a
    /// watchdog, which leave out the nodes from which the reply is missing.
    bool follows = false;
    /// A watchdog extends leases. Its rounds must not depend on the processor time of another thread.
    bool of_watchdog = false;
    /// NodesOptions::share_connections
    bool may_share = true;
    /// The thread that leads the shared lane gets no processor (Lane::is_stalled()).
    bool leader_is_stalled = false;
    /// See next_rounds_to_share().
    unsigned rounds_to_share = 0;
};

enum class LaneChoice : std::uint8_t {
    to_follow,  ///< the lane with the command to follow, even if another thread makes a round on it
    shared,
    /// The lane that was used last of those that no round uses, if possible one on which no reply is missing.
    /// If there is none, a new one.
    for_itself
};

/// Returns the choice of the first row that applies:
///
///     situation                   | lane
///     ----------------------------+-----------
///     follows another command     | to_follow
///     the round of a watchdog     | for_itself
///     sharing is switched off     | for_itself
///     leader_is_stalled           | for_itself
///     rounds_to_share > 0         | shared
///     rounds_to_share = 0         | for_itself
constexpr LaneChoice choose_lane(const LaneSituation& in) noexcept {
    if (in.follows) return LaneChoice::to_follow;
    const bool may_share = in.may_share && !in.of_watchdog && !in.leader_is_stalled;
    return may_share && in.rounds_to_share > 0 ? LaneChoice::shared : LaneChoice::for_itself;
}

/// Threads share while this number is not 0. It counts down while few rounds are under way, so that a short
/// pause does not end the sharing. Returns the number after a round has begun, with which `rounds` are under
/// way:
///
///     rounds               | next
///     ---------------------+-------------------
///     more than processors | rounds_until_alone
///     otherwise            | left - 1, or 0
constexpr unsigned next_rounds_to_share(unsigned left, std::size_t rounds, std::size_t processors) noexcept {
    if (rounds > processors) return rounds_until_alone;
    return left - std::min(left, 1U);
}

}  // namespace redlock::detail
