// Leader: does in the calling thread what its TermSequence decides (term_sequence.hpp).
#include <redlock/algorithm/acquire.hpp>
#include <redlock/leader.hpp>

#include "lease_state.hpp"
#include "option_checks.hpp"
#include "term_sequence.hpp"

#include <algorithm>
#include <utility>

namespace redlock {

using TermState = detail::TermSequence::State;

LockOptions detail::lock_options(const LeaderOptions& options, Renewer* watchdog, const Nodes& nodes) {
    using namespace std::chrono_literals;
    LockOptions result{.ttl = options.ttl,
                       .retry = options.retry,
                       .drift_factor = options.drift_factor,
                       .fencing = !nodes.has_cluster(),
                       .fair = options.fair,
                       .holder = options.holder,
                       .watchdog = watchdog,
                       .max_hold = std::chrono::nanoseconds::max(),  // a term may last for ever
                       .margin = options.margin};
    detail::check_lock(result, nodes, {}, "LeaderOptions");
    detail::require(options.longest_pause >= options.retry.delay && options.longest_pause <= 24h,
                    "LeaderOptions::longest_pause", options.longest_pause, "be from retry.delay, ",
                    options.retry.delay, ", to 24 h");
    return result;
}

// ---- Term

Term::Term(detail::Acquisition acquisition)
    : acquisition_(std::move(acquisition)),
      fencing_token_(acquisition_.state->lease(acquisition_.number).fencing_token),
      lost_(acquisition_.state->lost()) {}

Clock::time_point Term::valid_until() const noexcept {
    if (!acquisition_.state->in_owning_process()) return {};
    const auto lease = acquisition_.state->lease(acquisition_.number);
    return lease.empty() || lease.released ? Clock::time_point{} : lease.valid_until;
}

std::chrono::nanoseconds Term::remaining() const noexcept {
    // The clock is read before the lease, as in LeaseView::remaining().
    const auto now = acquisition_.state->terms.clock.now();
    return std::max(valid_until() - now, Clock::duration::zero());
}

void Term::request_stop() const noexcept {
    acquisition_.state->request_stop(acquisition_.number);
}

// ---- Leader

Leader::Leader(Nodes& nodes, std::string resource, LeaderOptions options, Clock& clock, Entropy& entropy)
    : options_(std::move(options)),
      watchdog_(options_.watchdog ? nullptr : std::make_unique<Watchdog>(clock)),
      lock_(nodes, std::move(resource),
            detail::lock_options(options_, watchdog_ ? watchdog_.get() : options_.watchdog, nodes), clock,
            entropy) {}

void Leader::run(const Work& work, std::stop_token stop) {
    detail::TermSequence sequence{options_, lock_.state_->terms.entropy};
    sequence.begin(std::move(stop));
    for (sequence.pause_ended(); sequence.state() != TermState::idle; sequence.pause_ended()) {
        make_term(sequence, work);
        const auto pause = sequence.report();
        lock_.state_->terms.clock.sleep_until(lock_.now() + pause, sequence.stop());
    }
}

Result Leader::run_once(const Work& work, std::stop_token stop) {
    detail::TermSequence sequence{options_, lock_.state_->terms.entropy};
    sequence.begin_term(std::move(stop));
    make_term(sequence, work);
    return sequence.outcome();
}

/// Goes from the state campaigning to the state resigned.
void Leader::make_term(detail::TermSequence& sequence, const Work& work) {
    auto result = lock_.acquire_within(
        {.attempts = options_.retry.attempts, .stop = sequence.stop(), .wait_while_held = true});
    sequence.campaigned(std::move(result), lock_.remaining());
    if (sequence.state() == TermState::leading) try {
            const Term term{lock_.acquisition()};
            const std::stop_callback on_stop{sequence.stop(), [&] { term.request_stop(); }};
            work(term);
            sequence.work_ended(term.lost());
        } catch (...) {
            sequence.work_failed(std::current_exception());
        }
    if (sequence.state() == TermState::resigning) sequence.released(lock_.release());
}

}  // namespace redlock
