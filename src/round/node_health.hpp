// Decides whether a node is trusted to answer in time, and when a node that has failed is probed again. This
// class is a circuit breaker. Each Server (server.hpp) has one.
//
// A *probe* is an attempt to reach a node that is not trusted. It begins when a round asks the node because
// the next probe is due, or because its outcome depends on the node (QuorumRound::needs()). If the round ends
// before the connection is ready, the connection goes on with its handshake. A waiter that tries a
// node before its home node (waiting.hpp) begins a probe, too, if one is due. A clean-up is a probe only if a
// round has left the node alone although one is due (Server::let_releases_probe()).
//
//     state   | meaning                                        | transitions
//     --------+------------------------------------------------+---------------------------------------------
//     trusted | the node is trusted to answer in time          | failed() → failed
//     failed  | it has failed, and is mostly not asked until   | begin_probe() → probed
//             | its next probe is due                          | succeeded(), connected() → trusted
//             |                                                | update(), trust_late_replies(), if a late
//             |                                                | reply has come → trusted
//     probed  | a probe is under way; if it hangs, the next    | failed() → failed, with a longer pause
//             | probe is due after a pause                     | begin_probe() → probed
//             |                                                | → trusted as from the state failed
//
// The class has no clock, mutex or I/O of its own. The pauses (*back-off*) double from at most 10 ms to at
// most 1 s. Each is random, between half of this time and the whole, so that clients do not probe at the same
// time. The pauses start again with 10 ms when the node has answered a command in time.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>

#include "back_off.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace redlock::detail {

/// The reason why a node gave no usable answer.
struct NodeFailure {
    std::error_code cause{};
    std::string detail{};
};

class NodeHealth {
public:
    enum class State : std::uint8_t { trusted, failed, probed };

    static constexpr BackOff back_off{.shortest = std::chrono::milliseconds{10},
                                      .longest = std::chrono::seconds{1}};

    State state() const noexcept { return state_; }
    bool trusted() const noexcept { return state_ == State::trusted; }
    /// Returns true if the node is not trusted and its pause is over.
    bool probe_due(Clock::time_point now) const noexcept { return !trusted() && now >= next_probe_; }
    const NodeFailure& last_failure() const noexcept { return last_failure_; }

    /// Trusts the node again if a late reply has come and its pause is over. Otherwise a node that is always
    /// late would delay every round by node_timeout.
    void update(Clock::time_point now) noexcept {
        if (now >= next_probe_) trust_late_replies();
    }

    /// Trusts the node again if a late reply has come, even during its pause. It is called if a round needs
    /// the node for a quorum, or if a probe is due.
    void trust_late_replies() noexcept {
        if (replied_late_) trust();
    }

    /// Records that a probe begins. The next probe is due after a pause. Requires that the node is not
    /// trusted.
    void begin_probe(Clock::time_point now, Entropy& entropy) {
        state_ = State::probed;
        next_probe_ = now + pause(entropy);
    }

    /// Records that the node has answered a command in time.
    void succeeded() noexcept {
        trust();
        failures_ = 0;
    }

    /// Records that the node has answered the handshake of any connection.
    void connected() noexcept { trust(); }

    /// Records that a late reply has come: no round was waiting for it any more.
    void replied_late() noexcept { replied_late_ = true; }

    /// Records a failure. Returns how long the node is left alone from now on; nothing if it was left alone
    /// already. If many threads meet the same failure, only the first makes the pause longer.
    std::optional<Clock::duration> failed(NodeFailure failure, Clock::time_point now, Entropy& entropy) {
        last_failure_ = std::move(failure);
        if (state_ == State::failed && now < next_probe_) return std::nullopt;
        state_ = State::failed;
        replied_late_ = false;
        ++failures_;
        const auto span = pause(entropy);
        next_probe_ = now + span;
        return span;
    }

private:
    Clock::duration pause(Entropy& entropy) const { return back_off.pause(failures_ - 1, entropy); }

    void trust() noexcept {
        state_ = State::trusted;
        replied_late_ = false;
    }

    State state_ = State::trusted;
    bool replied_late_ = false;  // since the last failure
    int failures_ = 0;           // in a row
    Clock::time_point next_probe_{};
    NodeFailure last_failure_{};
};

}  // namespace redlock::detail
