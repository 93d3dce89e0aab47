// The errors of this library: one enum, with its std::error_category.
//
//     if (auto result = lock.acquire(); !result) {
//         if (result.error() == redlock::Errc::held_by_other) return busy();
//         ...
//     }
//
// Runtime failures, such as failed nodes, a lock that others hold, or a time limit, are returned as results.
// Incorrect use, such as a ttl of zero or a malformed address, throws std::invalid_argument when the object
// is constructed.
#pragma once

#include <redlock/export.hpp>

#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace redlock {

/// The *outcomes* of an operation, and the *causes* of an unknown vote at one node. Two of the outcomes are
/// causes as well: `deadline`, and `lost`, which then says that the subscription of a waiter is lost.
enum class Errc {
    // The outcome of acquire, extend or release.
    held_by_other = 1,   ///< Nodes refused: another client holds the lock, or several clients contend for it.
    no_quorum,           ///< Too many nodes gave no usable answer. The report of each node has the cause.
    validity_exhausted,  ///< A majority granted, but too late: no validity was left.
    deadline,            ///< The caller's deadline passed before an attempt was complete.
    cancelled,           ///< A stop was requested on the caller's std::stop_token.
    not_held,            ///< There is nothing to extend or release.
    /// The validity is over, so many nodes have lost the key that the others are no majority, or the watchdog
    /// has reported the loss.
    lost,
    already_held,  ///< The Lock holds the resource already. Nothing was sent.
    hold_limit,    ///< The watchdog stopped extending because LockOptions::max_hold was over.

    // The cause of an unknown vote at one node.
    timed_out = 100,  ///< The node did not answer completely within node_timeout.
    /// Refused, reset, closed or unreachable, the server has too many clients, or no address is known.
    connection_failed,
    authentication_failed,  ///< NOAUTH, WRONGPASS: the user name or the password is wrong or missing.
    permission_denied,      ///< NOPERM: the ACL does not allow the user a command or the key.
    read_only,              ///< READONLY: the server is a replica, not a master.
    loading,                ///< LOADING: the server is still reading its data set.
    out_of_memory,          ///< OOM: the server has reached maxmemory.
    quarantined,            ///< The node was restarted, or lost its data, too recently to have a vote.
    same_server,            ///< The server is also the server of another node, and has only one vote.
    backing_off,            ///< The node failed a moment ago and is skipped for a while. Nothing was sent.
    wrong_type,             ///< WRONGTYPE: the key holds something that is not a lock.
    unexpected_reply,       ///< The reply does not fit the command, or a count is far ahead of the others.
    server_busy,            ///< Another temporary error: BUSY, TRYAGAIN, MASTERDOWN, MISCONF and so on.
    server_error,           ///< Another permanent error: MOVED, an unknown command and so on.
    unknown_error,          ///< An error that the library does not know, such as one of a proxy.
    /// Nothing was sent, mostly because a majority had become impossible or the caller's time was over.
    not_asked,
    /// The other votes decided before the node answered, or before the command could be written.
    not_awaited,
};

}  // namespace redlock

template <>
struct std::is_error_code_enum<redlock::Errc> : std::true_type {};

namespace redlock {

/// Returns the error category of this library, whose name is "redlock". The function is not inline, because
/// error codes compare the address of their category and each shared object would otherwise have its own.
REDLOCK_EXPORT const std::error_category& category() noexcept;

/// Returns the error code for `e`; std::error_code calls this function.
inline std::error_code make_error_code(Errc e) noexcept {
    return {static_cast<int>(e), category()};
}

/// Returns true if this cause at a node can disappear without an operator. It returns false for a wrong
/// password, a missing permission, a replica or a key of another type: it is pointless to retry after those.
/// It returns true for an error that the library does not know.
REDLOCK_EXPORT bool is_transient(const std::error_code& cause) noexcept;

/// The exception of lock() in Lock, RecursiveLock and Semaphore, because std::mutex::lock() has no other way
/// to report a failure. All other operations return a Result.
class REDLOCK_EXPORT Error : public std::system_error {
public:
    Error(std::error_code code, std::string message)
        : std::system_error(code), message_(std::make_shared<const std::string>(std::move(message))) {}

    /// Returns Result::message() of the acquisition that failed.
    const char* what() const noexcept override { return message_->c_str(); }

private:
    std::shared_ptr<const std::string> message_;  // shared, so that a copy cannot throw
};

}  // namespace redlock
