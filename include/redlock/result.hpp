// The result of an operation on a lock: whether it was successful, the reason if not, and the report of each
// node.
#pragma once

#include <redlock/export.hpp>
#include <redlock/nodes.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock {

/// What acquire(), extend(), release() and their variants return. Converts to true on success.
class [[nodiscard]] REDLOCK_EXPORT Result {
public:
    /// Makes the result of an operation that needed no round, such as `already_held` or `not_held`.
    explicit Result(std::error_code error) noexcept : error_(error) {}

    /// Makes the result of an operation whose last round has this tally.
    Result(std::error_code error, Tally&& tally, int attempts, std::chrono::nanoseconds validity)
        : error_(error), tally_(std::move(tally)), attempts_(attempts), validity_(validity) {}

    /// Returns true if the operation was successful.
    explicit operator bool() const noexcept { return !error_; }

    /// Returns no error on success. Otherwise returns an outcome of Errc, or a code of the system (no
    /// entropy, no memory).
    std::error_code error() const noexcept { return error_; }

    /// Returns the reports of the last round, one for each node, in the configured order; empty if there was
    /// no round. On a temporary Result it returns a copy, so that `for (auto& node : lock.acquire().nodes())`
    /// is safe.
    std::span<const NodeReport> nodes() const& noexcept { return tally_.reports(); }
    std::vector<NodeReport> nodes() && {
        const auto reports = tally_.reports();
        return {reports.begin(), reports.end()};
    }

    /// Returns how many attempts were made; 0 if there was no round.
    int attempts() const noexcept { return attempts_; }

    /// Returns the remaining validity at the instant of success; zero after a failure.
    std::chrono::nanoseconds validity() const noexcept { return validity_; }

    /// Returns the last place in the queue that the home node reported to an acquisition with
    /// LockOptions::fair; nothing if the acquisition never waited in a queue.
    const std::optional<QueuePlace>& place() const noexcept { return place_; }
    void set_place(const QueuePlace& place) noexcept { place_ = place; }

    /// Returns the nodes that refuse to keep a queue for this client, each with the cause and the server's
    /// text. Examples are a missing permission and a key of another type. Empty unless an acquisition with
    /// LockOptions::fair found no home node and paused instead.
    std::span<const NodeReport> queue_refusals() const noexcept { return queue_refusals_; }
    void set_queue_refusals(std::vector<NodeReport> refusals) noexcept {
        queue_refusals_ = std::move(refusals);
    }

    /// Returns one line for a log, with the nodes that failed and without secrets, such as "held by another
    /// on 3 of 5 nodes; 10.0.0.4:6379 timed out after 50 ms".
    std::string message() const;

    /// Replaces the error and the number of attempts. Returns this object.
    Result& conclude(std::error_code error, int attempts) noexcept {
        error_ = error;
        attempts_ = attempts;
        return *this;
    }

private:
    std::error_code error_;
    Tally tally_;
    int attempts_ = 0;
    std::chrono::nanoseconds validity_{};
    std::optional<QueuePlace> place_{};
    std::vector<NodeReport> queue_refusals_{};
};

namespace detail {

/// Returns true if the node failed: its vote is unknown, although the round asked for it and waited for it,
/// or the round did not ask it because it had failed a moment ago.
inline bool failed_to_vote(const NodeReport& node) {
    return node.vote == Vote::unknown && node.cause != Errc::not_asked && node.cause != Errc::not_awaited;
}

}  // namespace detail
}  // namespace redlock
