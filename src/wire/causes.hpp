// The tables of the outcomes of an operation and of the causes of an unknown vote. Each cause has one row,
// which is read by
//
// - the messages of the error category (error.cpp),
// - is_transient(), which decides whether it is useful to retry (rule D7 in docs/rules.md),
// - the classification of error replies (reply.hpp), and
// - the advice of `redlock doctor` and the JSON output of the command.
#pragma once

#include <redlock/error.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace redlock::detail {

/// Whether waiting can cure a cause, see is_transient(). A permanent cause remains until an operator acts.
enum class Lasting : std::uint8_t { transient, permanent };

/// The properties of an error code.
struct ErrorProperties {
    Errc code;
    std::string_view name;  ///< The enumerator, as programs see it.
    std::string_view message;
    Lasting lasting = Lasting::transient;
    std::string_view advice{};  ///< For an operator; empty if the node has no fault.
    /// The beginnings of the error replies with this cause, with '|' in between. One of a single word is the
    /// whole first word.
    std::string_view errors{};
};

/// The outcomes of an operation on a lock.
inline constexpr std::array outcomes{
    ErrorProperties{Errc::held_by_other, "held_by_other", "held by another"},
    ErrorProperties{Errc::no_quorum, "no_quorum", "no quorum"},
    ErrorProperties{Errc::validity_exhausted, "validity_exhausted", "validity exhausted"},
    ErrorProperties{Errc::deadline, "deadline", "deadline reached"},
    ErrorProperties{Errc::cancelled, "cancelled", "cancelled"},
    ErrorProperties{Errc::not_held, "not_held", "not held"},
    ErrorProperties{Errc::lost, "lost", "lost"},
    ErrorProperties{Errc::already_held, "already_held", "already held"},
    ErrorProperties{Errc::hold_limit, "hold_limit", "hold limit reached"},
};

/// The causes of an unknown vote at one node.
inline constexpr std::array causes{
    ErrorProperties{
        Errc::timed_out, "timed_out", "timed out", Lasting::transient,
        "check whether the server hangs; if only the network is slow, use a larger --node-timeout"},
    ErrorProperties{
        Errc::connection_failed, "connection_failed", "connection failed", Lasting::transient,
        "start the server, or correct the node's address; check bind, port, protected-mode, maxclients and "
        "the firewall",
        "DENIED|ERR max number of clients "},
    ErrorProperties{
        Errc::authentication_failed, "authentication_failed", "authentication failed", Lasting::permanent,
        "put the password of requirepass, or the name and password of an ACL user, into the node's "
        "address; with TLS, use certificates that both sides trust",
        "NOAUTH|WRONGPASS|ERR invalid password|ERR Client sent AUTH, but no password is set|"
        "ERR AUTH <password> called without any password configured"},
    ErrorProperties{Errc::permission_denied, "permission_denied", "permission denied", Lasting::permanent,
                    "grant the missing permission; ACL GETUSER shows what the user may do", "NOPERM"},
    ErrorProperties{Errc::read_only, "read_only", "read-only replica", Lasting::permanent,
                    "make the server a master: REPLICAOF NO ONE", "READONLY"},
    ErrorProperties{Errc::loading, "loading", "still loading its data", Lasting::transient,
                    "wait until the server has read its data", "LOADING"},
    ErrorProperties{Errc::out_of_memory, "out_of_memory", "out of memory", Lasting::transient,
                    "set a larger maxmemory, or delete keys", "OOM"},
    ErrorProperties{Errc::quarantined, "quarantined", "quarantined after a restart", Lasting::transient,
                    "wait until the quarantine is over"},
    ErrorProperties{Errc::same_server, "same_server", "same server as another node", Lasting::permanent,
                    "give each node a server of its own"},
    ErrorProperties{Errc::backing_off, "backing_off", "backing off", Lasting::transient},
    ErrorProperties{
        Errc::wrong_type, "wrong_type", "wrong type of key", Lasting::permanent,
        "use another resource name: the key of this name belongs to another program; TYPE shows its type",
        "WRONGTYPE"},
    ErrorProperties{Errc::unexpected_reply, "unexpected_reply", "unexpected reply", Lasting::transient,
                    "check whether a Redis server answers at this address"},
    ErrorProperties{Errc::server_busy, "server_busy", "server busy", Lasting::transient,
                    "read the log of the server", "BUSY|TRYAGAIN|MASTERDOWN|CLUSTERDOWN|MISCONF|NOREPLICAS"},
    ErrorProperties{Errc::server_error, "server_error", "server error", Lasting::permanent,
                    "read the log of the server",
                    "MOVED|ASK|CROSSSLOT|REDIRECT|ERR unknown command|ERR unknown subcommand|"
                    "ERR wrong number of arguments|ERR syntax error|ERR DB index is out of range|"
                    "ERR invalid DB index|ERR SELECT is not allowed in cluster mode|"
                    "ERR This instance has cluster support disabled|ERR bad lua script for redis cluster"},
    ErrorProperties{Errc::unknown_error, "unknown_error", "unknown error", Lasting::transient,
                    "read the log of the server, or of the proxy in front of it"},
    ErrorProperties{Errc::not_asked, "not_asked", "not asked", Lasting::transient},
    ErrorProperties{Errc::not_awaited, "not_awaited", "not awaited", Lasting::transient},
};

/// What to change in the address of a node. If a failure looks like one of these mistakes, the detail in the
/// report of the node ends with "; " and the hint.
namespace hints {
inline constexpr std::string_view with_tls = "if this port expects TLS, write rediss://";
inline constexpr std::string_view without_tls =
    "if this port has no TLS, write redis://, or sentinel_tls=no for Sentinels";
inline constexpr std::string_view ca_file =
    "if it is a certificate of your own, name its authority in ca_file";
inline constexpr std::string_view server_name =
    "if it is the right server, give a name in its certificate as server_name";
inline constexpr std::string_view certificate = "give the certificate and the key that the server asks for";
inline constexpr std::string_view sentinel =
    "if a Sentinel answers at this port, write redis+sentinel://HOST:PORT/MASTER";
inline constexpr std::string_view no_sentinel =
    "if a server and no Sentinel answers at this port, write redis://HOST:PORT";
inline constexpr std::string_view cluster =
    "if a Redis Cluster answers at this port, write redis+cluster://HOST:PORT";
inline constexpr std::string_view no_cluster =
    "if no Redis Cluster answers at this port, write redis://HOST:PORT";
inline constexpr std::array all{with_tls, without_tls, ca_file, server_name, certificate,
                                sentinel, no_sentinel, cluster, no_cluster};
}  // namespace hints

/// Returns the row of `code`, or null if there is no such code.
constexpr const ErrorProperties* find_error(Errc code) noexcept {
    const auto* const outcome = std::ranges::find(outcomes, code, &ErrorProperties::code);
    if (outcome != outcomes.end()) return outcome;
    const auto* const cause = std::ranges::find(causes, code, &ErrorProperties::code);
    return cause == causes.end() ? nullptr : cause;
}

/// Returns the enumerator as text, such as "no_quorum"; empty if there is no such code.
constexpr std::string_view name_of(Errc code) noexcept {
    const auto* const row = find_error(code);
    return row ? row->name : std::string_view{};
}

}  // namespace redlock::detail
