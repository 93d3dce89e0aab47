// A client that waits for a resource in an event loop: for its turn, and then at a home node.
#pragma once

#include <redlock/nodes.hpp>

#include "../redis/queue_refusals.hpp"
#include "listeners.hpp"
#include "local_queues.hpp"
#include "rounds.hpp"

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock::loop {

class LoopWaiter final : public WaiterInSteps, Listeners::User {
public:
    /// Does no I/O. All arguments must outlive the object.
    LoopWaiter(Listeners& listeners, LocalQueues& queues, ListenerPools pools, Clock& clock)
        : listeners_(listeners), place_(queues), refusals_(pools), nodes_(pools.size()), clock_(clock) {}
    ~LoopWaiter() override;

    std::size_t home() const noexcept override { return home_; }
    std::string new_ticket() override { return ticket_; }
    void disconnect(std::error_code refused, std::string_view words) override;
    void lose_subscription() override;
    void report_refusals(Tally& tally) const override { refusals_.report(tally, clock_.now()); }

    bool await_turn(Task& task, flow::Turn& turn) override;
    std::optional<bool> listen_in_steps(Task& task, NodeSet homes, const RoundLimits& limits) override;
    std::optional<WakeUp> sleep_in_steps(Task& task, Clock::time_point until,
                                         const std::stop_token& stop) override;

private:
    void on_listener() noexcept override { task_->wake(); }
    bool on_message() noexcept override;

    bool listens() const noexcept { return !ticket_.empty(); }
    bool try_next(const RoundLimits& limits);
    void leave_home(bool keeps) noexcept;

    Listeners& listeners_;
    LocalQueues::Place place_;
    QueueRefusals refusals_;
    const std::size_t nodes_;
    Clock& clock_;
    Task* task_ = nullptr;
    std::size_t home_ = 0;
    std::string ticket_{};                // there; empty if it does not listen
    bool woken_ = false;                  // a message with the ticket has come
    std::optional<std::size_t> tried_{};  // listen_in_steps(): the node at which it tries to listen
    bool joined_ = false;                 // listen_in_steps(): it has joined the listener of `tried_`
};

}  // namespace redlock::loop
