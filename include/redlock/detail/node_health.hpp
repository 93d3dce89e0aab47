// Whether a node is worth waiting for: a circuit breaker, one for each node, shared by all threads.
//
//     state     | what holds                                   | left by
//     ----------+----------------------------------------------+------------------------------------------------
//     closed    | it is trusted to answer in time              | failed() → open
//     open      | it failed: it is left alone until the next   | begin_probe() → half_open
//               | probe is due, unless the vote hangs on it    | update(), if it has replied late → closed
//               |                                              | succeeded(), connected() → closed
//     half_open | a probe is under way; where it hangs, the    | failed() → open, for longer
//               | next one is due a pause later                | succeeded(), connected(), update() → closed
//
// Pure: no clock, no lock, no I/O of its own. The pauses double from 10 ms to 1 s, each with a random part,
// so that clients do not probe in step. They grow until a command was answered in time.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/retry.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace redlock::detail {

/// Why a node gave no answer.
struct NodeFailure {
    std::error_code cause{};
    std::string detail{};
};

class NodeHealth {
public:
    enum class State : std::uint8_t { closed, open, half_open };

    static constexpr Clock::duration shortest_pause = std::chrono::milliseconds{10};
    static constexpr Clock::duration longest_pause = std::chrono::seconds{1};

    State state() const noexcept { return state_; }
    bool trusted() const noexcept { return state_ == State::closed; }
    bool probe_due(Clock::time_point now) const noexcept { return !trusted() && now >= next_probe_; }
    const NodeFailure& last_failure() const noexcept { return last_failure_; }

    /// A node whose late replies have come is trusted again, but not before its pause is over: one that is
    /// always late would cost every round its budget.
    void update(Clock::time_point now) noexcept {
        if (now >= next_probe_) trust_late_replies();
    }

    /// The same at once: the vote hangs on this node.
    void trust_late_replies() noexcept {
        if (replied_late_) close();
    }

    void begin_probe(Clock::time_point now, Entropy& entropy) {
        state_ = State::half_open;
        next_probe_ = now + pause(entropy);
    }

    /// A command was answered in time.
    void succeeded() noexcept {
        close();
        failures_ = 0;
    }

    /// A probe's handshake was answered.
    void connected() noexcept { close(); }

    /// A reply came that no round waited for any more.
    void replied_late() noexcept { replied_late_ = true; }

    /// Returns for how long the node is left alone from now on. Nothing where it was left alone already: of
    /// many threads that meet the same failure, one makes the pause longer.
    std::optional<Clock::duration> failed(NodeFailure failure, Clock::time_point now, Entropy& entropy) {
        last_failure_ = std::move(failure);
        if (state_ == State::open && now < next_probe_) return std::nullopt;
        state_ = State::open;
        replied_late_ = false;
        failures_ = std::min(failures_ + 1, max_failures);
        const auto span = pause(entropy);
        next_probe_ = now + span;
        return span;
    }

private:
    static constexpr int max_failures = 8;  // 10 ms × 2^7 exceeds a second

    Clock::duration pause(Entropy& entropy) const {
        const auto doublings = std::max(failures_ - 1, 0);
        return random_pause(std::min(shortest_pause * (1 << doublings), longest_pause), entropy);
    }

    void close() noexcept {
        state_ = State::closed;
        replied_late_ = false;
    }

    State state_ = State::closed;
    bool replied_late_ = false;  // since it failed last
    int failures_ = 0;           // in a row
    Clock::time_point next_probe_{};
    NodeFailure last_failure_{};
};

}  // namespace redlock::detail
