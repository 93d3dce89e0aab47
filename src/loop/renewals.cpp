#include "renewals.hpp"

#include "context.hpp"
#include "round_runner.hpp"

#include <utility>

namespace redlock::loop {

Renewals::Renewals(Context& context)
    : Renewer(context.clock()),
      Task(context.scheduler()),
      queue_(context.clock()),
      runner_(std::make_unique<RoundRunner>(context, static_cast<Task&>(*this), RoundRunner::Limit::none)) {}

Renewals::~Renewals() = default;

void Renewals::add(detail::Acquisition acquisition) {
    (void)queue_.add(std::move(acquisition));
    wake();
}

/// Sets the timer anew, or cancels it. Otherwise an execution context of Asio would run until the old
/// instant.
void Renewals::remove(const detail::Acquisition& acquisition) noexcept {
    (void)queue_.remove(acquisition);
    if (!queue_.has_batch()) wake_at(queue_.next_pass());
}

/// First goes on with the round, and then reports losses. In the other order, a lease could be reported as
/// lost although the replies that extend it have come. A callback of a loss can shut the loop down.
void Renewals::proceed() {
    if (queue_.has_batch()) go_on();
    const bool reported = queue_.report_losses();
    if (!queue_.has_batch() && !reported && queue_.begin_batch()) go_on();
    if (queue_.has_batch())
        wake_by(queue_.next_loss());
    else
        wake_at(queue_.next_pass());
}

void Renewals::go_on() {
    queue_.go_on([this](detail::RenewalQueue::Batch& batch) {
        return runner_->advance(batch.requests, batch.limits, batch.tallies);
    });
}

void Renewals::shut_down() noexcept {
    runner_.reset();
    queue_.end_batch();
}

}  // namespace redlock::loop
