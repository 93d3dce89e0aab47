// The full answer of a verb: whether, why not, and what happened on each node (rule A12).
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

class [[nodiscard]] REDLOCK_EXPORT Result {
public:
    /// No round took place (already_held, not_held, no entropy ...).
    explicit Result(std::error_code error) noexcept : error_(error) {}

    /// The outcome of the round tallied, the last of `attempts`.
    Result(std::error_code error, Tally&& tally, int attempts, std::chrono::nanoseconds validity)
        : error_(error), tally_(std::move(tally)), attempts_(attempts), validity_(validity) {}

    /// True when the verb did what it is called.
    explicit operator bool() const noexcept { return !error_; }

    /// No error on success; else an Errc of the first group, or the system's own code (no entropy, no
    /// memory).
    std::error_code error() const noexcept { return error_; }

    /// What each node said in the last round, in the order configured; empty if there was no round. Of a
    /// Result that is about to go, a copy: `for (auto& node : lock.acquire().nodes())` has what it looks at.
    std::span<const NodeReport> nodes() const& noexcept { return tally_.reports(); }
    std::vector<NodeReport> nodes() && {
        const auto reports = tally_.reports();
        return {reports.begin(), reports.end()};
    }

    /// How many attempts were made; 0 if there was no round.
    int attempts() const noexcept { return attempts_; }

    /// What was left of the validity when the verb succeeded (S15, S16); zero otherwise.
    std::chrono::nanoseconds validity() const noexcept { return validity_; }

    /// The place in the queue that an acquire() with LockOptions::fair was told last (S69); nothing if it
    /// never waited in one.
    const std::optional<QueuePlace>& place() const noexcept { return place_; }
    void set_place(const QueuePlace& place) noexcept { place_ = place; }

    /// Where an acquire() with LockOptions::fair found no node to wait at, and made pauses: the nodes that
    /// refuse to keep a queue, each with the cause and the server's words (a missing permission, a key of
    /// another type).
    std::span<const NodeReport> queue_refusals() const noexcept { return queue_refusals_; }
    void set_queue_refusals(std::vector<NodeReport> refusals) noexcept {
        queue_refusals_ = std::move(refusals);
    }

    /// One line for a log, with the nodes that mattered and without secrets:
    /// "held by another on 3 of 5 nodes; 10.0.0.4:6379 timed out after 50 ms".
    std::string message() const;

    /// The same round, as the conclusion of so many attempts.
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

/// Whether its vote is unknown for a reason of its own, and not because it was not needed.
inline bool failed_to_vote(const NodeReport& node) {
    return node.vote == Vote::unknown && node.cause != Errc::not_asked && node.cause != Errc::not_awaited;
}

}  // namespace detail
}  // namespace redlock
