#include "renewals.hpp"

#include "context.hpp"
#include "round_runner.hpp"

#include <utility>

namespace redlock::loop {

Renewals::Renewals(Context& context)
    : Task(context.scheduler()),
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
    queue_.remove(acquisition);
    if (!batch_) wake_at(queue_.next_turn());
}

/// First goes on with the round, and then reports losses. In the other order, a lease could be reported as
/// lost although the replies that extend it have come. A callback of a loss can shut the loop down.
void Renewals::proceed() {
    if (batch_) go_on();
    const bool reported = queue_.report_losses();
    if (!batch_ && !reported) {
        batch_ = queue_.begin_batch();
        if (batch_) go_on();
    }
    if (batch_)
        wake_by(queue_.next_loss());
    else
        wake_at(queue_.next_turn());
}

/// Goes on with the round of the batch. If the round is over, applies its votes to the leases, and ends the
/// batch.
void Renewals::go_on() {
    try {
        if (!runner_->advance(batch_->requests, batch_->limits, batch_->tallies)) return;
        queue_.apply_votes(*batch_);
        batch_->describe_holders();
    } catch (...) {  // no memory, or a Nodes of the user that throws
        detail::RenewalQueue::postpone(*batch_);
    }
    queue_.end(*batch_);
    batch_.reset();
}

void Renewals::shut_down() noexcept {
    runner_.reset();
    batch_.reset();
}

}  // namespace redlock::loop
