// What can go wrong, as one enum in the std::error_code machinery.
//
//     if (auto result = lock.acquire(); !result) {
//         if (result.error() == redlock::Errc::held_by_other) return busy();
//         ...
//     }
//
// Circumstances (nodes down, lock taken, time used up) are returned; wrong use (a ttl of zero, a
// malformed address) throws std::invalid_argument once, where the object is made.
#pragma once

#include <redlock/export.hpp>

#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace redlock {

/// Outcomes of a verb (first group) and causes at one node (second group).
enum class Errc {
    // The outcome of acquire, extend or release.
    held_by_other = 1,   ///< refused by the nodes that answer: another client holds it, or contends for it
    no_quorum,           ///< too many nodes gave no usable answer; see the causes node by node
    validity_exhausted,  ///< a majority granted, but too late to be of use (S18)
    deadline,            ///< the caller's deadline came before any attempt was complete
    cancelled,           ///< the caller's std::stop_token was stopped
    not_held,            ///< there is nothing to extend or release
    lost,                ///< it was held once; its validity is over and cannot come back (rule C3)
    already_held,        ///< acquire on a Lock that holds: nothing was sent (rule A11)
    hold_limit,          ///< the longest hold was reached, extension has stopped

    // The cause why one node's vote is unknown.
    timed_out = 100,        ///< no complete answer within the node's budget
    connection_failed,      ///< refused, reset, closed, unreachable, or no address is found
    authentication_failed,  ///< NOAUTH, WRONGPASS: password or user name are wrong or missing
    permission_denied,      ///< NOPERM: the ACL of the user lacks a command or the key
    read_only,              ///< READONLY: this is a replica, not a master
    loading,                ///< LOADING: the server is still reading its data set
    out_of_memory,          ///< OOM: maxmemory is reached
    quarantined,            ///< restarted or flushed too recently to have a vote
    same_server,            ///< the server behind another node, too: it has one vote
    backing_off,            ///< failed a moment ago and is left alone for a while; nothing was sent
    wrong_type,             ///< WRONGTYPE: the key holds something that is not a lock
    unexpected_reply,       ///< not an answer to what was asked; the connection was destroyed
    server_busy,            ///< another error that passes by itself: BUSY, TRYAGAIN, MASTERDOWN, MISCONF ...
    server_error,           ///< another error that does not: MOVED, unknown command ...
    not_asked,              ///< nothing was sent: the others' votes had already decided, the caller's time
                            ///< was over, or a SET of the same owner was pending
    not_awaited,            ///< sent, but the others' votes decided before it answered
};

}  // namespace redlock

template <>
struct std::is_error_code_enum<redlock::Errc> : std::true_type {};

namespace redlock {

/// The one category of this library; its name is "redlock". Compiled: error codes compare by its address, and
/// an inline one would be another in each shared object.
REDLOCK_EXPORT const std::error_category& category() noexcept;

inline std::error_code make_error_code(Errc e) noexcept {
    return {static_cast<int>(e), category()};
}

/// Whether waiting can cure this cause at a node (rule D7). A wrong password, a missing permission, a
/// replica or a foreign key type stay as they are until an operator acts: retrying is then pointless.
REDLOCK_EXPORT bool is_transient(const std::error_code& cause) noexcept;

/// Thrown by lock() of Lock, RecursiveLock and Semaphore, whose std signature has no other way to say that it
/// failed. Every other verb returns a Result.
class REDLOCK_EXPORT Error : public std::system_error {
public:
    Error(std::error_code code, std::string message)
        : std::system_error(code), message_(std::make_shared<const std::string>(std::move(message))) {}

    /// Result::message() of the acquisition that failed.
    const char* what() const noexcept override { return message_->c_str(); }

private:
    std::shared_ptr<const std::string> message_;  // shared, so that copying cannot throw
};

}  // namespace redlock
