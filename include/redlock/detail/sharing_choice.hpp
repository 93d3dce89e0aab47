// Decides whether the round of a thread shares its connections with the rounds of other threads. A *round*
// sends one command to N Redis masters and counts their votes. The threads of a process have two sets of
// connections:
//
//     set    | a round uses
//     -------+--------------------------------------------------------------------------------------------
//     own    | a connection to each node that no other round uses at the same time (node.hpp)
//     shared | one connection to each node for all rounds; one thread makes all (shared_rounds.hpp)
//
// Own connections are faster if few threads ask at the same time, because the threads work in parallel. If
// many ask, sharing is cheaper: the commands of many rounds go out in one write, and are answered together.
#pragma once

#include <algorithm>
#include <cstddef>

namespace redlock::detail {

/// Sharing ends after this number of rounds in a row that began while no more rounds than processors were
/// under way.
inline constexpr unsigned rounds_until_own = 64;

/// What is known when a round begins.
struct SharingQuestion {
    /// A command that this one must not overtake is unanswered on a connection of the own set.
    bool follows_own = false;
    /// Such a command may be unanswered on a connection of the shared set.
    bool follows_shared = false;
    /// See next_calm().
    unsigned calm = 0;
    /// A watchdog extends leases, and none of their SETs can be unanswered in the shared set.
    bool renewal = false;
    /// The thread that makes the rounds of the shared set gets no processor (SharedRounds::is_late()).
    bool leader_is_late = false;
};

/// Returns true if the round uses the shared set, according to the first row that applies:
///
///     situation                               | set
///     ----------------------------------------+-------
///     the renewal of a watchdog               | own
///     follows a command of the own set        | own
///     may follow a command of the shared set  | shared
///     the leader is late                      | own
///     calm > 0                                | shared
///     calm = 0                                | own
///
/// The rounds of a watchdog must not depend on the processor time of another thread.
constexpr bool uses_shared_set(const SharingQuestion& in) noexcept {
    if (in.renewal || in.follows_own) return false;
    return in.follows_shared || (in.calm > 0 && !in.leader_is_late);
}

/// Threads share while the number `calm` is not 0. It counts down while few rounds are under way, so that a
/// short pause does not end the sharing. Returns the number after a round has begun, with which `rounds` are
/// under way:
///
///     rounds               | next
///     ---------------------+-----------------
///     more than processors | rounds_until_own
///     otherwise            | calm - 1, or 0
constexpr unsigned next_calm(unsigned calm, std::size_t rounds, std::size_t processors) noexcept {
    if (rounds > processors) return rounds_until_own;
    return calm - std::min(calm, 1U);
}

}  // namespace redlock::detail
