// The interface between the operations in an event loop and the nodes: rounds that are made in steps.
// LoopGroup implements it for RedisNodes. For a Nodes of the user, BlockingRounds calls Nodes::ask().
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>

#include "scheduler.hpp"

#include <memory>
#include <optional>
#include <span>
#include <stop_token>

namespace redlock::flow {
struct Turn;
}

namespace redlock::loop {

/// A round that is under way. If it is destroyed before its end, it ends there: the tallies have the votes
/// that have come, and bytes that are not sent yet are sent later.
class RoundInSteps : detail::NotCopied {
public:
    virtual ~RoundInSteps() = default;

    /// Goes on as far as possible without blocking. Returns nothing if the round is over. Otherwise the round
    /// wakes its task when it can go on, and must go on at the returned instant at the latest. May throw
    /// std::bad_alloc.
    virtual std::optional<Clock::time_point> advance() = 0;
};

/// A waiter of a loop, see Waiter. In place of functions that block, it has the functions below. They go on
/// as far as possible without blocking. While they have nothing to return, they wake the task when they must
/// be called again, with the same arguments. A caller that requests a stop wakes the task itself. They may
/// throw std::bad_alloc.
class WaiterInSteps : public Waiter {
public:
    /// Goes on with Turn, and returns true once it is over.
    virtual bool await_turn(Task& task, flow::Turn& turn) = 0;
    /// Does what listen() does. Requires that the turn of the waiter has come.
    virtual std::optional<bool> listen_in_steps(Task& task, NodeSet homes, const RoundLimits& limits) = 0;
    /// Does what sleep() does.
    virtual std::optional<WakeUp> sleep_in_steps(Task& task, Clock::time_point until,
                                                 const std::stop_token& stop) = 0;

private:
    bool listen(NodeSet, const RoundLimits&) final { return false; }
    WakeUp sleep(Clock::time_point, const std::stop_token&) final { return {}; }
};

class Rounds : detail::NotCopied {
public:
    virtual ~Rounds() = default;

    /// Begins a round, see Nodes::ask(). If there are several requests, they are extensions. All arguments
    /// must outlive the round. Returns null if the round is over: it was made in this call, which has
    /// blocked. Otherwise does no I/O before RoundInSteps::advance().
    virtual std::unique_ptr<RoundInSteps> begin(Task& task, std::span<const Request> requests,
                                                const RoundLimits& limits, std::span<Tally> tallies) = 0;

    /// Returns a waiter for LockOptions::fair, or null if these nodes keep no queue.
    virtual std::unique_ptr<WaiterInSteps> waiter() { return nullptr; }

    /// Is called when the loop has found this descriptor ready. Wakes the tasks whose rounds wait for it.
    virtual void on_ready(int /*fd*/) {}

    /// Ends the use of the loop: no descriptor is watched any more. A round that begins afterwards is
    /// advanced once and destroyed, so that a release is written or queued.
    virtual void detach() noexcept {}

    /// Is called after detach(), when no round and no waiter is left, and none will begin.
    virtual void unused() noexcept {}

    /// Returns true if the Nodes of the user was destroyed.
    virtual bool nodes_are_gone() const noexcept { return false; }
};

}  // namespace redlock::loop
