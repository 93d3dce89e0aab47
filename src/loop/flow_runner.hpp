// The front of event loops: it makes the rounds and pauses of one flow without blocking (flow/flow.hpp).
#pragma once

#include <redlock/detail/lease_state.hpp>

#include "../flow/flow.hpp"
#include "front.hpp"
#include "round_runner.hpp"
#include "rounds.hpp"
#include "scheduler.hpp"

#include <exception>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

namespace redlock::loop {

/// Runs one flow. The operation, the Steps of the flow, the Front and the task must outlive the runner. If
/// the runner is destroyed before the flow has ended, the flow is destroyed.
class FlowRunner {
public:
    FlowRunner(Front& front, Task& task, flow::Operation& operation)
        : task_(task), operation_(operation), rounds_(std::in_place, front, task) {}

    /// Starts the flow that `make` returns, or goes on with it, and returns true once it has ended. Otherwise
    /// the task is woken when the function must be called again. A caller that requests a stop wakes the task
    /// itself.
    template <class Make>
    bool advance(Make make) {
        if (!flow_) operation_.start(flow_.emplace(flow::InPlace{make}));
        while (!operation_.ended()) {
            std::exception_ptr failure;
            try {
                if (!std::visit(*this, operation_.pending())) return false;
            } catch (...) {  // no memory, or a Nodes of the user that throws
                failure = std::current_exception();
            }
            operation_.resume(std::move(failure));
        }
        return true;
    }

    /// Returns the error code with which the flow has ended, or throws its exception.
    std::error_code result() const { return flow_->result(); }

    /// Destroys the flow, and its round before that.
    void destroy() noexcept {
        rounds_.reset();
        flow_.reset();
    }

    // Return true if the flow need not wait any more.
    bool operator()(std::monostate) const noexcept { return true; }
    bool operator()(const flow::PendingRound& round) {
        return rounds_->advance({round.request, 1}, *round.limits, {round.tally, 1});
    }
    bool operator()(const flow::PendingPause& pause) {
        if (pause.stop->stop_requested() || task_.now() >= pause.until) return true;
        task_.wake_at(pause.until);
        return false;
    }
    bool operator()(const flow::PendingTurn& it) { return in_steps(*it.waiter).await_turn(task_, *it.turn); }
    bool operator()(const flow::PendingListen& it) {
        const auto listens = in_steps(*it.waiter).listen_in_steps(task_, it.homes, *it.limits);
        if (listens) *it.listens = *listens;
        return listens.has_value();
    }
    bool operator()(const flow::PendingMessage& it) {
        auto message = in_steps(*it.waiter).sleep_in_steps(task_, it.until, *it.stop);
        if (message) *it.message = *std::move(message);
        return message.has_value();
    }
    bool operator()(const flow::PendingDescription& it) noexcept {
        it.state->describe_holder(*it.lease, it.ttl);
        return true;
    }

private:
    /// The nodes of a loop have no other waiters (LoopNodes::waiter()).
    static WaiterInSteps& in_steps(Waiter& waiter) noexcept { return static_cast<WaiterInSteps&>(waiter); }

    Task& task_;
    flow::Operation& operation_;
    std::optional<flow::Flow> flow_{};
    std::optional<RoundRunner> rounds_;  // refers to the frame of the flow
};

}  // namespace redlock::loop
