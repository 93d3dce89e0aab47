// The exit statuses of all subcommands. 64 to 77 have the meanings of <sysexits.h>.
#pragma once

#include <redlock/result.hpp>

#include <cstddef>
#include <system_error>

namespace redlock::tool::exit_status {

inline constexpr int held_by_other = 1;     ///< as in flock; --conflict-exit-code sets another one
inline constexpr int not_held = 1;          ///< status and who: nobody holds the lock
inline constexpr int warnings = 1;          ///< doctor: there are warnings
inline constexpr int unsafe = 2;            ///< doctor: a node is unsafe, or no majority has a vote
inline constexpr int usage = 64;            ///< EX_USAGE: wrong arguments, nothing was done
inline constexpr int no_quorum = 69;        ///< EX_UNAVAILABLE: too few nodes answered in time
inline constexpr int internal = 70;         ///< EX_SOFTWARE: for example no memory
inline constexpr int no_process = 71;       ///< EX_OSERR: no process could be created for the program
inline constexpr int lost = 75;             ///< EX_TEMPFAIL: the lock was held and is lost
inline constexpr int denied = 77;           ///< EX_NOPERM: a wrong password, or a missing permission
inline constexpr int not_executable = 126;  ///< the program cannot be executed, as in a shell
inline constexpr int not_found = 127;       ///< the program was not found, as in a shell
inline constexpr int signalled = 128;       ///< plus the number of the signal

/// Returns true if the node has refused the login, or a command that locks need.
bool is_refusal(const std::error_code& cause) noexcept;

/// Returns the exit status if too few nodes have answered: `denied` if some refused, and the others are fewer
/// than a quorum, otherwise `no_quorum`. `nodes` is 0 if the time was over before any node was asked.
int without_quorum(std::size_t nodes, std::size_t refusing) noexcept;

/// Returns the exit status for a result.
int of(const Result& result, int conflict = held_by_other) noexcept;

}  // namespace redlock::tool::exit_status
