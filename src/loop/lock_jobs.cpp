// The operations of an event loop: each job runs a flow.
#include "lock_jobs.hpp"

#include "../flow/lock_operations.hpp"
#include "round_runner.hpp"
#include "rounds.hpp"

#include <exception>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>
#include <variant>

namespace redlock::loop {
namespace {

/// The memory for the frames of an operation of a loop. The votes are on the heap while a round needs them,
/// because many operations only wait.
using LoopOperation = flow::OperationWithMemory<flow::memory_of_frames>;

/// The front of an event loop (flow/flow.hpp): does what a flow waits for, without blocking. Each function
/// returns true if the flow need not wait any more. Otherwise the task is woken when the function must be
/// called again.
class LoopFront {
public:
    LoopFront(Context& context, Task& task) : task_(task), rounds_(context, task) {}

    bool operator()(std::monostate) const noexcept { return true; }
    bool operator()(const flow::PendingRound& round) {
        return rounds_.advance({round.request, 1}, *round.limits, {round.tally, 1});
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

    /// Ends a round that is under way.
    void end_round() noexcept { rounds_.end(); }

private:
    /// The nodes of a loop have no other waiters (LoopNodes::waiter()).
    static WaiterInSteps& in_steps(Waiter& waiter) noexcept { return static_cast<WaiterInSteps&>(waiter); }

    Task& task_;
    RoundRunner rounds_;
};

/// Runs the flow of `Operation` (flow/lock_operations.hpp). The request of a stop does not wake the task.
template <class Operation>
class FlowJob : public Job {
public:
    template <class... Arguments>
    explicit FlowJob(const JobContext& lock, Arguments&&... arguments)
        : lock_(lock), steps_(frames_, lock.state, std::forward<Arguments>(arguments)...) {}

    bool advance() override {
        if (!flow_) frames_.start(flow_.emplace(flow::InPlace{[this] { return steps_.run(); }}));
        while (!frames_.ended()) {
            std::exception_ptr failure;
            try {
                if (!std::visit(front_, frames_.pending())) return false;
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
        try {
            steps_.send_unreleased();
        } catch (...) {  // NOLINT(bugprone-empty-catch): no memory, or a Nodes that throws; the keys expire
        }
    }

protected:
    const JobContext lock_;

private:
    LoopOperation frames_{lock_.context.nodes()};
    Operation steps_;
    std::optional<flow::Flow> flow_{};
    LoopFront front_{lock_.context, lock_.task};  // destroyed before the flow
    std::error_code error_{};
};

using ExtendJob = FlowJob<flow::ExtendLock>;
using ReleaseJob = FlowJob<flow::ReleaseLock>;

class AcquireJob final : public FlowJob<flow::AcquireLock> {
public:
    AcquireJob(const JobContext& lock, const algorithm::AcquireLimits& limits, std::stop_source stop)
        : FlowJob(lock, limits, lock.state->options().ttl), stop_(std::move(stop)) {}

    void cancel() noexcept override {
        stop_.request_stop();
        lock_.task.wake();
    }

private:
    std::stop_source stop_;  // of the limits
};

}  // namespace

std::unique_ptr<Job> acquire_job(const JobContext& lock, algorithm::AcquireLimits limits) {
    std::stop_source stop;
    limits.stop = stop.get_token();
    return std::make_unique<AcquireJob>(lock, limits, std::move(stop));
}

std::unique_ptr<Job> extend_job(const JobContext& lock, std::chrono::milliseconds ttl) {
    return std::make_unique<ExtendJob>(lock, ttl);
}

std::unique_ptr<Job> release_job(const JobContext& lock, std::uint64_t acquisition, flow::Replies replies) {
    return std::make_unique<ReleaseJob>(lock, acquisition, replies);
}

}  // namespace redlock::loop
