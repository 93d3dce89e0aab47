// The tables of the outcomes of an operation and of the causes of an unknown vote. In a round, each of the N
// Redis masters (the *nodes*) grants or refuses a command. Its vote is unknown if it gives no usable answer.
// Each cause has one row, which is read by
//
// - the messages of the error category (error.cpp),
// - is_transient(), which decides whether it is useful to retry (rule D7 in docs/rules.md),
// - the classification of error replies (reply.hpp), and
// - the advice of `redlock doctor` and the JSON output of the command.
#pragma once

#include <redlock/error.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace redlock::detail {

/// The outcome of an operation on a lock.
struct Outcome {
    Errc code;
    std::string_view name;  ///< The enumerator, as programs see it.
    std::string_view message;
};

inline constexpr std::array outcomes{
    Outcome{Errc::held_by_other, "held_by_other", "held by another"},
    Outcome{Errc::no_quorum, "no_quorum", "no quorum"},
    Outcome{Errc::validity_exhausted, "validity_exhausted", "validity exhausted"},
    Outcome{Errc::deadline, "deadline", "deadline reached"},
    Outcome{Errc::cancelled, "cancelled", "cancelled"},
    Outcome{Errc::not_held, "not_held", "not held"},
    Outcome{Errc::lost, "lost", "lost"},
    Outcome{Errc::already_held, "already_held", "already held"},
    Outcome{Errc::hold_limit, "hold_limit", "hold limit reached"},
};

/// The cause of an unknown vote at one node.
struct Cause {
    Errc code;
    std::string_view name;  ///< The enumerator, as programs see it.
    std::string_view message;
    bool transient;                                 ///< True if it can pass by itself, see is_transient().
    std::string_view advice{};                      ///< For an operator; empty if the node has no fault.
    std::array<std::string_view, 6> first_words{};  ///< First words of the error replies with this cause.
};

inline constexpr std::array causes{
    Cause{.code = Errc::timed_out,
          .name = "timed_out",
          .message = "timed out",
          .transient = true,
          .advice =
              "look whether it hangs and how far away it is; where it is only far, a larger --node-timeout"},
    Cause{.code = Errc::connection_failed,
          .name = "connection_failed",
          .message = "connection failed",
          .transient = true,
          .advice =
              "start the server, or correct the node's address; look at bind, port, protected-mode and the "
              "firewall"},
    Cause{.code = Errc::authentication_failed,
          .name = "authentication_failed",
          .message = "authentication failed",
          .transient = false,
          .advice =
              "the password of requirepass, or the name and password of an ACL user, in the node's address; "
              "with TLS, certificates that both sides trust",
          .first_words = {"NOAUTH", "WRONGPASS"}},
    Cause{.code = Errc::permission_denied,
          .name = "permission_denied",
          .message = "permission denied",
          .transient = false,
          .advice = "allow what is missing: ACL GETUSER shows what the user may do",
          .first_words = {"NOPERM"}},
    Cause{.code = Errc::read_only,
          .name = "read_only",
          .message = "read-only replica",
          .transient = false,
          .advice = "replicaof no one",
          .first_words = {"READONLY"}},
    Cause{.code = Errc::loading,
          .name = "loading",
          .message = "still loading its data",
          .transient = true,
          .advice = "wait until it has read its data",
          .first_words = {"LOADING"}},
    Cause{.code = Errc::out_of_memory,
          .name = "out_of_memory",
          .message = "out of memory",
          .transient = true,
          .advice = "a larger maxmemory, or fewer keys",
          .first_words = {"OOM"}},
    Cause{.code = Errc::quarantined,
          .name = "quarantined",
          .message = "quarantined after a restart",
          .transient = true,
          .advice = "wait"},
    Cause{.code = Errc::same_server,
          .name = "same_server",
          .message = "same server as another node",
          .transient = false,
          .advice = "give each node a server of its own"},
    Cause{.code = Errc::backing_off, .name = "backing_off", .message = "backing off", .transient = true},
    Cause{.code = Errc::wrong_type,
          .name = "wrong_type",
          .message = "wrong type of key",
          .transient = false,
          .advice = "look at the key by TYPE: another program uses its name",
          .first_words = {"WRONGTYPE"}},
    Cause{.code = Errc::unexpected_reply,
          .name = "unexpected_reply",
          .message = "unexpected reply",
          .transient = true,
          .advice = "look whether it is a Redis server that answers at this address"},
    Cause{.code = Errc::server_busy,
          .name = "server_busy",
          .message = "server busy",
          .transient = true,
          .advice = "look into the log of the server",
          .first_words = {"BUSY", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN", "MISCONF", "NOREPLICAS"}},
    Cause{.code = Errc::server_error,
          .name = "server_error",
          .message = "server error",
          .transient = false,
          .advice = "look into the log of the server"},
    Cause{.code = Errc::not_asked, .name = "not_asked", .message = "not asked", .transient = true},
    Cause{.code = Errc::not_awaited, .name = "not_awaited", .message = "not awaited", .transient = true},
};

/// Returns the row of `code`, or null if it is not the cause of an unknown vote.
constexpr const Cause* find_cause(Errc code) noexcept {
    const auto* const row = std::ranges::find(causes, code, &Cause::code);
    return row == causes.end() ? nullptr : row;
}

/// Returns the row of `code`, or null if it is not the outcome of an operation.
constexpr const Outcome* find_outcome(Errc code) noexcept {
    const auto* const row = std::ranges::find(outcomes, code, &Outcome::code);
    return row == outcomes.end() ? nullptr : row;
}

/// Returns the enumerator as text, such as "no_quorum"; empty if there is no such code.
constexpr std::string_view name_of(Errc code) noexcept {
    if (const auto* const cause = find_cause(code)) return cause->name;
    const auto* const outcome = find_outcome(code);
    return outcome ? outcome->name : std::string_view{};
}

}  // namespace redlock::detail
