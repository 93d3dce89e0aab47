// LeaseView: answers from the LeaseState, which the watchdog shares.
#include <redlock/algorithm/acquire.hpp>
#include <redlock/detail/renewer.hpp>
#include <redlock/lease_view.hpp>

#include "lease_state.hpp"
#include "option_checks.hpp"

namespace redlock {

bool LeaseView::valid() const noexcept {
    return remaining() > std::chrono::nanoseconds::zero();
}

std::chrono::nanoseconds LeaseView::remaining() const noexcept {
    if (!in_owning_process()) return std::chrono::nanoseconds::zero();
    // The clock is read before the lease. In the other order, the watchdog could extend the lease in between,
    // and the answer would be zero although the lease was valid all the time.
    const auto now = state_->terms.clock.now();
    const auto lease = state_->lease();
    return lease.valid_at(now) ? lease.valid_until - now : std::chrono::nanoseconds::zero();
}

std::stop_token LeaseView::lost() const {
    return in_owning_process() ? state_->lost() : std::stop_token{};
}

const std::string& LeaseView::resource() const noexcept {
    static const std::string none;
    return state_ ? state_->resources().front() : none;
}

Resources LeaseView::resources() const noexcept {
    return state_ ? state_->resources() : Resources{};
}

std::string_view LeaseView::owner() const noexcept {
    return in_owning_process() ? state_->owner() : std::string_view{};
}

std::uint64_t LeaseView::fencing_token() const noexcept {
    return in_owning_process() ? state_->lease().fencing_token : 0;
}

std::size_t LeaseView::slot() const noexcept {
    return state_ ? state_->slot() : 0;
}

detail::Acquisition LeaseView::acquisition() const {
    return {state_, state_->number()};
}

Clock::time_point LeaseView::now() const noexcept {
    return state_ ? state_->terms.clock.now() : Clock::time_point{};
}

std::chrono::milliseconds LeaseView::ttl() const noexcept {
    return state_ ? state_->terms.options.ttl : std::chrono::milliseconds::zero();
}

void LeaseView::check_ttl(std::chrono::milliseconds ttl) const {
    if (!state_) return;
    const auto& nodes = state_->terms.nodes;
    detail::check_ttl("extend: ttl", ttl, state_->terms.options.drift_factor, nodes.node_timeout(),
                      nodes.quarantine());
}

algorithm::AcquireLimits LeaseView::acquire_limits() const {
    if (!state_) return {};
    const auto& [attempts, delay] = state_->terms.options.retry;
    return {.attempts = attempts,
            .queue_timeout = state_->terms.options.queue_timeout.value_or((attempts - 1) * delay)};
}

bool LeaseView::in_owning_process() const noexcept {
    return state_ && state_->in_owning_process();
}

}  // namespace redlock
