#include "context.hpp"

#include "../lock/option_checks.hpp"

namespace redlock::loop {
namespace {

/// The rounds of a Nodes that cannot make them in steps: each round calls Nodes::ask() and blocks the loop.
class BlockingRounds final : public Rounds {
public:
    explicit BlockingRounds(Nodes& nodes) : nodes_(nodes) {}

    std::unique_ptr<RoundInSteps> begin(Task&, std::span<const Request> requests, const RoundLimits& limits,
                                        std::span<Tally> tallies) override {
        nodes_.ask(requests, limits, tallies);
        return nullptr;
    }

private:
    Nodes& nodes_;
};

}  // namespace

Context::Context(Nodes& nodes, EventLoop& loop, Clock& clock, Entropy& entropy)
    : Nodes(Like{nodes}),
      loop_(&loop),
      entropy_(entropy),
      has_cluster_(nodes.has_cluster()),
      scheduler_(std::make_shared<Scheduler>(loop, clock)),
      renewals_(*this) {
    const auto* const required = nodes.required_clock();
    detail::require(!required || required == &clock, "clock", "not the clock of the nodes",
                    "be the same, because deadlines are instants of this clock");
    detail::require(!loop.has_handler(), "event_loop", "in use",
                    "serve one AsyncNodes at a time, because ready() and wake() are for one of them");
    rounds_ = nodes.rounds_in(loop, scheduler_);
    if (!rounds_) rounds_ = std::make_shared<BlockingRounds>(nodes);
    loop.set_handler(this);
}

/// A child of fork() that goes on running the loop of its parent must not read from the parent's sockets. Its
/// scheduler calls no task.
void Context::on_ready(int fd) {
    if (!in_owning_process()) return;
    rounds_->on_ready(fd);
    scheduler_->run();
}

void Context::on_wake() {
    scheduler_->woken();
    scheduler_->run();
}

/// The round of the watchdog must end before detach(). Each member is taken from the list before its
/// operation ends, because the end of an operation can destroy other members.
void Context::shut_down() noexcept {
    if (is_shut_down() || !in_owning_process()) return;
    loop_->set_handler(nullptr);
    loop_ = nullptr;
    renewals_.shut_down();
    while (auto* const member = members_.take()) member->shut_down();
    rounds_->detach();
    scheduler_->detach();
}

void Context::ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
    /// The rounds are not continued, so nobody has to be woken.
    struct Nobody final : Task {
        using Task::Task;
        void proceed() override {}
    };
    Nobody nobody{scheduler()};
    if (const auto round = rounds_->begin(nobody, requests, limits, tallies)) (void)round->advance();
}

std::unique_ptr<Waiter> Context::waiter() {
    return rounds_->waiter();
}

}  // namespace redlock::loop
