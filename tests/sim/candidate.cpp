#include "candidate.hpp"

#include <exception>
#include <stdexcept>
#include <utility>

namespace redlock::sim {

Candidate::Candidate(Client& client, SimLoop& loop, LeaderOptions options, Rng rng, double disturbs)
    : client_(client),
      loop_(loop),
      options_(std::move(options)),
      rng_(rng),
      disturbs_(disturbs),
      fiber_(*client.process().current()) {}

Candidate::Run::Run(std::shared_ptr<Candidate> candidate) : candidate_(std::move(candidate)) {
    candidate_->loop_.call([this] { candidate_->begin(); });
}

Candidate::Run::~Run() {
    const Process::IgnoreCrash ignore_crash{candidate_->client_.process()};
    candidate_->loop_.call([this] { candidate_->leave(); });
}

/// The functions of the leader keep this object. They are destroyed when run() has ended.
void Candidate::begin() {
    const auto self = shared_from_this();
    options_.on_failure = [this](const Result& result) { failed(result); };
    options_.on_error = [this](const std::exception_ptr&) { disturb(); };
    leader_.emplace(loop_.nodes(), leadership, options_);
    loop_.add(at_shutdown_);
    leader_->run([self](AsyncTerm term) { self->elected(std::move(term)); },
                 [self](const std::exception_ptr&) { self->ended(); });
    loop_.has_begun({.is_under_way = [self] { return !self->over_ && self->leader_; },
                     .disturb = [self](bool destroys) { self->stop_in_loop(destroys); }});
}

/// In calm conditions, a process has one leader at a time, so all its attempts are over.
void Candidate::leave() {
    loop_.remove(at_shutdown_);
    at_work_.reset();
    term_.reset();
    leader_.reset();
    for (const auto& owner : client_.network().owners()) {
        client_.checker().expect_gone_at_the_end(client_.process(), owner, {leadership});
        expect_gone(owner);
    }
}

// ---- The fibers

std::optional<std::stop_token> Candidate::wait_for_a_term() {
    while (!term_ && !over_) client_.process().wait_until(Clock::never());
    return term_ ? std::optional{term_->lost()} : std::nullopt;
}

/// The work has ended before the fiber waits for the loop.
void Candidate::end_term(bool has_failed) {
    const auto owner = at_work_->owner();
    at_work_.reset();
    loop_.call([&] {
        if (stopped_) stopped_.emplace(client_.process());
        auto term = *std::exchange(term_, std::nullopt);
        term.end(has_failed ? std::make_exception_ptr(std::runtime_error{"of the work"}) : nullptr);
        expect_gone(owner);
    });
}

void Candidate::stop() {
    loop_.call([this] { stop_in_loop(rng_.chance(0.5)); });
}

// ---- In the loop

void Candidate::elected(AsyncTerm term) {
    auto& checker = client_.checker();
    checker.expect(!term_ && !over_, Rule::one_completion, client_.name() + " begins a term in another one");
    checker.expect(!stopped_, Rule::one_completion, client_.name() + " begins a term after its cancellation");
    at_work_.emplace(client_, term, options_);
    term_.emplace(std::move(term));
    client_.process().wake(fiber_);
    disturb();
}

/// A leader that has given up its lock does not hold it in the next campaign.
void Candidate::failed(const Result& result) {
    client_.note([&] { return "does not lead: " + result.message(); });
    client_.checker().expect(result.error() != Errc::already_held, Rule::over_with_release, client_.name());
    disturb();
}

void Candidate::ended() {
    auto& checker = client_.checker();
    checker.expect(!over_ && !term_ && stopped_, Rule::one_completion, client_.name() + " ends its run");
    if (stopped_ && !stopped_->within(2 * client_.nodes().node_timeout()))
        checker.violated(Rule::ends_in_time, client_.name() + " in a run that was cancelled");
    over_ = true;
    client_.process().wake(fiber_);
}

/// The completion of run() is not called. A term goes on until its work has ended.
void Candidate::shut_down() {
    if (term_) client_.checker().expect(term_->lost().stop_requested(), Rule::stop_in_time, client_.name());
    over_ = true;
    client_.process().wake(fiber_);
}

void Candidate::disturb() {
    if (rng_.chance(disturbs_)) stop_in_loop(rng_.chance(0.5));
}

void Candidate::stop_in_loop(bool destroys) {
    if (over_ || !leader_) return;
    client_.note([&] { return destroys ? "destroys its leader" : "cancels its leader"; });
    if (!stopped_) stopped_.emplace(client_.process());
    destroys ? leader_.reset() : leader_->cancel();
    if (term_) client_.checker().expect(term_->lost().stop_requested(), Rule::stop_in_time, client_.name());
}

/// Expects in calm conditions that the keys of an attempt or a term are gone soon. If the loop was shut down,
/// its connections may have been closed just after a release was written. Then a later round or the
/// destructor of the RedisNodes repeats the release.
void Candidate::expect_gone(std::string owner) {
    const auto span = client_.settling_time();
    if (span == 0ns || loop_.shutdowns() > 0 || !client_.process().alive()) return;
    const auto unreached = [&client = client_, owner] { return client.network().unreached(owner); };
    client_.checker().expect_gone_in(span, std::move(owner), {leadership}, unreached, &client_.process());
}

}  // namespace redlock::sim
