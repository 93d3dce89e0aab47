// Decides which lane the round of a thread uses, and how long the thread waits for the leading thread of this
// lane. The threads of a process have several lanes (lanes.hpp): the *shared lane*, whose leading thread
// makes the rounds of all (lane.hpp), and *own lanes*, each of which one round has for itself at a time.
//
// Few threads are faster with their own lanes, because they work in parallel. If many ask at the same time,
// sharing is cheaper: the commands of many rounds go out in one write, and are answered together.
#pragma once

#include "write_choice.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>

namespace redlock::detail {

/// Sharing ends after this number of rounds in a row that began while no more rounds than processors were
/// under way.
inline constexpr unsigned rounds_until_alone = 64;

/// What is known when a round begins.
struct LaneSituation {
    /// A watchdog extends leases. Its rounds must not depend on the processor time of another thread.
    bool of_watchdog = false;
    /// NodesOptions::share_connections
    bool may_share = true;
    /// The thread that leads the shared lane gets no processor (Lane::is_stalled()).
    bool leading_thread_is_stalled = false;
    /// The shared lane has connections to less than a quorum of the nodes, because this process had no
    /// descriptor left for the others (Lane::unconnected()).
    bool shared_lacks_quorum = false;
    /// The same is true of the own lane that the round would have.
    bool own_lacks_quorum = false;
    /// See next_rounds_to_share().
    unsigned rounds_to_share = 0;
};

/// Returns true if the round uses the shared lane, and false if it has its own lane. The first row that
/// applies decides:
///
///     situation                                                     | lane
///     --------------------------------------------------------------+-------------------------------------
///     a command is unanswered that this one must or should follow   | that of the command (Lanes::choose()
///                                                                   | decides this without this function)
///     sharing is switched off, the round is one of a watchdog, or   | its own
///     the leading thread of the shared lane gets no processor       |
///     exactly one of the two lanes has less than a quorum           | the other one
///     more rounds than processors are under way, or were a short    | shared
///     time ago (next_rounds_to_share())                             |
///     otherwise                                                     | its own
///
/// In the first row, the lane is used even if another thread makes a round on it. But a SET follows a release
/// only if no round uses the lane, and the extensions of a watchdog leave out the nodes of the command in
/// place of following it.
///
/// The own lane of a round is one that no round uses: of several, one of those with the fewest nodes in
/// Lane::unconnected(), of these one on which no reply is missing, and of these the last one used. If there
/// is none, the lane is new.
constexpr bool shares_lane(const LaneSituation& in) noexcept {
    if (!in.may_share || in.of_watchdog || in.leading_thread_is_stalled) return false;
    if (in.shared_lacks_quorum != in.own_lacks_quorum) return in.own_lacks_quorum;
    return in.rounds_to_share > 0;
}

/// Returns the number that LaneSituation::rounds_to_share has after a round has begun, with which `rounds`
/// are under way. It counts down while few are, so that a short pause does not end the sharing.
constexpr unsigned next_rounds_to_share(unsigned left, std::size_t rounds, std::size_t processors) noexcept {
    if (rounds > processors) return rounds_until_alone;
    return left - std::min(left, 1U);
}

// ---- Beside a leading thread

/// Returns how long a thread whose round is in the inbox waits before it wakes the leading thread, or nothing
/// if it does not wake it (rule 2 in lane.hpp). `time_left` is the time until the deadline of the round.
constexpr std::optional<std::chrono::nanoseconds> wakes_leading_thread_after(
    bool is_first, std::chrono::nanoseconds time_left) noexcept {
    if (time_left <= max_collecting) return std::chrono::nanoseconds{};
    if (is_first) return max_collecting;
    return std::nullopt;
}

/// Returns for how long a thread sleeps beyond the end of its round before it leaves the round to the leading
/// thread (lane.hpp). A leading thread that gets a processor ends the round in this time, and then all votes
/// that have come count.
constexpr std::chrono::nanoseconds time_to_end(std::chrono::nanoseconds node_timeout) noexcept {
    return std::max<std::chrono::nanoseconds>(node_timeout / 8, 2 * max_collecting);
}

}  // namespace redlock::detail
