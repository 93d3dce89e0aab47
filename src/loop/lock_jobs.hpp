// The operations of an AsyncLock or AsyncSemaphore while they are under way: each job runs a flow
// (flow/lock_operations.hpp), and is driven by the task of its lock.
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/result.hpp>

#include "../flow/flow.hpp"
#include "context.hpp"
#include "round_runner.hpp"
#include "rounds.hpp"
#include "scheduler.hpp"

#include <exception>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

namespace redlock::loop {

class Job : detail::NotCopied {
public:
    virtual ~Job() = default;

    /// Goes on as far as possible without blocking. Returns true if the operation has ended, and has applied
    /// its outcome to the lease. Otherwise the task is woken when the function must be called again. If the
    /// function throws, the operation has ended without a result.
    virtual bool advance() = 0;

    /// Returns the result. May be called once, after advance() has returned true.
    virtual Result take_result() noexcept = 0;

    /// Ends the operation at the shutdown of the loop, and writes the release that is left to do.
    virtual void shut_down() noexcept = 0;
};

/// The memory for the frames of an operation of a loop. Most votes are on the heap while a round needs them,
/// because many operations only wait.
using LoopOperation = flow::OperationWithMemory<flow::memory_of_frames>;

/// The front of an event loop (flow/flow.hpp): does what a flow waits for, without blocking. Each function
/// returns true if the flow need not wait any more. Otherwise the task is woken when the function must be
/// called again.
class LoopFront {
public:
    LoopFront(Context& context, Task& task) : task_(task), rounds_(context, task) {}

    bool operator()(std::monostate) const noexcept { return true; }
    bool operator()(const flow::AwaitedRound& round) {
        return rounds_.advance({round.request, 1}, *round.limits, {round.tally, 1});
    }
    bool operator()(const flow::AwaitedPause& pause) {
        if (pause.stop->stop_requested() || task_.now() >= pause.until) return true;
        task_.wake_at(pause.until);
        return false;
    }
    bool operator()(const flow::AwaitedTurn& it) { return in_steps(*it.waiter).await_turn(task_, *it.turn); }
    bool operator()(const flow::AwaitedListen& it) {
        const auto listens = in_steps(*it.waiter).listen_in_steps(task_, it.homes, *it.limits);
        if (listens) *it.listens = *listens;
        return listens.has_value();
    }
    bool operator()(const flow::AwaitedMessage& it) {
        auto message = in_steps(*it.waiter).sleep_in_steps(task_, it.until, *it.stop);
        if (message) *it.message = *std::move(message);
        return message.has_value();
    }

    /// Ends a round that is under way.
    void end_round() noexcept { rounds_.end(); }

private:
    /// The nodes of a loop have no other waiters (Context::waiter()).
    static WaiterInSteps& in_steps(Waiter& waiter) noexcept { return static_cast<WaiterInSteps&>(waiter); }

    Task& task_;
    RoundRunner rounds_;
};

/// Runs the flow of `Operation`, which is made with these arguments. The request of a stop does not wake the
/// task.
template <class Operation>
class FlowJob final : public Job {
public:
    template <class... Arguments>
    FlowJob(Context& context, Task& task, const Arguments&... arguments)
        : frames_(context), steps_(frames_, arguments...), front_(context, task) {}

    bool advance() override {
        if (!flow_) frames_.start(flow_.emplace(steps_.run()));
        while (!frames_.ended()) {
            std::exception_ptr failure;
            try {
                if (!std::visit(front_, frames_.awaited())) return false;
            } catch (...) {  // no memory, or a Nodes of the user that throws
                failure = std::current_exception();
            }
            frames_.resume(std::move(failure));
        }
        error_ = flow_->result();
        return true;
    }
    Result take_result() noexcept override { return steps_.take_result(error_); }

    /// Destroys the flow, and its round before that, which refers to the frame of the flow.
    void shut_down() noexcept override {
        front_.end_round();
        flow_.reset();
        steps_.send_unreleased();  // without memory, the keys expire
    }

private:
    LoopOperation frames_;
    Operation steps_;
    std::optional<flow::Flow> flow_{};
    LoopFront front_;  // destroyed before the flow
    std::error_code error_{};
};

}  // namespace redlock::loop
