// The state behind an AsyncNodes: what the locks of one event loop share.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/linked_list.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/entropy.hpp>
#include <redlock/event_loop.hpp>
#include <redlock/nodes.hpp>
#include <redlock/process.hpp>

#include "renewals.hpp"
#include "round_places.hpp"
#include "rounds.hpp"
#include "scheduler.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace redlock::loop {

class Context;

/// A base class of Member, so that the context exists before the base class Task, which needs its scheduler.
struct ContextOwner {
    const std::shared_ptr<Context> context;
};

/// A task that must do something when the loop is shut down, such as a lock. It keeps its Context, and is in
/// the list of the Context while it lives.
class Member : protected ContextOwner, public Task, public detail::Linked<Member> {
public:
    /// Ends the operations of the object without calling a completion, and writes their releases as far as
    /// the sockets accept them. Is called once.
    virtual void shut_down() noexcept = 0;

protected:
    explicit Member(std::shared_ptr<Context> of_loop);
};

/// It is also the Nodes of the operations. It does not refer to the Nodes of the user, which may be destroyed
/// while operations are under way.
class Context final : public Nodes, private EventLoop::Handler {
public:
    Context(Nodes& nodes, EventLoop& loop, Clock& clock, Entropy& entropy);
    ~Context() override {
        shut_down();
        rounds_->unused();
    }

    bool in_owning_process() const noexcept override { return process_ == this_process(); }
    bool is_shut_down() const noexcept { return loop_ == nullptr; }
    void shut_down() noexcept;
    /// Compares the address of the first name, which belongs to one Nodes of the user. This object keeps the
    /// names, so no other Nodes can have them at this address, even if it is made at the address of a
    /// destroyed one.
    bool is_of(const Nodes& nodes) const noexcept { return nodes.name(0).data() == name(0).data(); }

    // ---- As Nodes

    bool has_cluster() const noexcept override { return has_cluster_; }
    /// Writes a command whose replies are not awaited, as far as the sockets accept it. Such commands are the
    /// holder descriptions, the withdrawals of tickets, the releases at the shutdown, and those after a flow
    /// has failed. All other rounds are made by a RoundRunner.
    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) override;
    using Nodes::ask;
    /// Returns a WaiterInSteps, whose functions only a LoopFront calls.
    std::unique_ptr<Waiter> waiter() override;

    // ---- Its parts

    Renewals& renewals() noexcept { return renewals_; }
    Clock& clock() const noexcept { return scheduler_->clock(); }
    Entropy& entropy() const noexcept { return entropy_; }
    Scheduler& scheduler() noexcept { return *scheduler_; }
    Rounds& rounds() noexcept { return *rounds_; }
    RoundPlaces& places() noexcept { return places_; }
    detail::LinkedList<Member>& members() noexcept { return members_; }

    /// Keeps the object for ever. A child of fork() does that with the objects of its parent.
    void keep(std::shared_ptr<Context> self) noexcept { self_ = std::move(self); }

private:
    void on_ready(int fd) override;
    void on_wake() override;

    const std::int64_t process_ = this_process();
    EventLoop* loop_;  // null after shut_down()
    Entropy& entropy_;
    const bool has_cluster_;
    std::shared_ptr<Scheduler> scheduler_;
    std::shared_ptr<Rounds> rounds_;
    RoundPlaces places_{};
    Renewals renewals_;
    detail::LinkedList<Member> members_{};
    std::shared_ptr<Context> self_{};
};

inline Member::Member(std::shared_ptr<Context> of_loop)
    : ContextOwner{std::move(of_loop)}, Task(context->scheduler()) {
    context->members().add(*this);
}

}  // namespace redlock::loop
