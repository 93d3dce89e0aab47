// Makes the rounds of one task, one after the other. Each round needs one of the places for rounds of the
// loop, unless the task has no limit.
#pragma once

#include "context.hpp"
#include "round_places.hpp"
#include "rounds.hpp"
#include "scheduler.hpp"

#include <memory>
#include <optional>
#include <span>

namespace redlock::loop {

class RoundRunner {
public:
    /// Whether the rounds of the task need a place.
    enum class Limit : bool { none, places };

    RoundRunner(Context& context, Task& task, Limit limit = Limit::places)
        : context_(context), task_(task), limit_(limit), place_(context.places(), task) {}

    /// Begins a round, or goes on with it, and returns true once it is over. Otherwise the task is woken when
    /// the function must be called again, with the same arguments. The round begins when there is a place for
    /// it. It begins without a place if a stop was requested or the deadline has passed, because it then
    /// sends nothing. (A release has no deadline, so it waits for a place.) May throw std::bad_alloc; then
    /// the round is over.
    bool advance(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
        try {
            if (!round_ && !may_begin(limits)) {
                task_.wake_at(limits.deadline);
                return false;
            }
            if (!round_) round_ = context_.rounds().begin(task_, requests, limits, tallies);
            const auto until = round_ ? round_->advance() : std::nullopt;
            if (until) task_.wake_at(*until);
            if (!until) end();
            return !until;
        } catch (...) {
            end();
            throw;
        }
    }

    /// Ends the round, if one is under way, and gives its place back.
    void end() noexcept {
        round_.reset();
        place_.give_back();
    }

private:
    bool may_begin(const RoundLimits& limits) {
        return limit_ == Limit::none || place_.take() || limits.stop.stop_requested() ||
               task_.now() >= limits.deadline;
    }

    Context& context_;
    Task& task_;
    const Limit limit_;
    RoundPlaces::Place place_;
    std::unique_ptr<RoundInSteps> round_{};
};

}  // namespace redlock::loop
