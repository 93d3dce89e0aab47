#include "wait_reporter.hpp"

#include "words.hpp"

#include <redlock/algorithm.hpp>
#include <redlock/detail/verbs.hpp>

namespace redlock::tool {

std::string text_of(const QueuePlace& place) {
    using Held = QueuePlace::Held;
    using std::chrono::milliseconds;
    const auto in_front =
        (place.in_front > 0 ? std::to_string(place.in_front) : std::string{"nobody"}) + " in front";
    if (place.held == Held::by_nobody) return "free, " + in_front;
    if (place.held == Held::by_waiter) return "being handed over, " + in_front;
    if (place.held_for < milliseconds::zero()) return "held without an end, " + in_front;
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(place.held_for).count();
    return "held for at most " + std::to_string(seconds) + " s more, " + in_front;
}

void WaitReporter::round_ended(const Command& command, const Tally& tally,
                               std::chrono::nanoseconds /*took*/) noexcept {
    if (detail::effect_of(command) == detail::KeyEffect::enqueues) {
        for (const auto& node : tally.reports())
            if (node.vote == Vote::refused) say(node.place);
    } else if (acquires(command.verb)) {
        const bool answered = tally.granted() >= quorum(tally.size()) || algorithm::ruled_out(tally) ||
                              algorithm::refused_by_holders(tally);
        failed_ = answered ? 0 : failed_ + 1;
        if (waits_ && failed_ == Retry{}.attempts)
            say_without_waiting(resource_ + ": " +
                                Result{Errc::no_quorum, Tally{tally}, failed_, {}}.message() + "; waiting");
    }
}

void WaitReporter::say(const QueuePlace& place) {
    if (!says_ || in_front_ == place.in_front) return;
    in_front_ = place.in_front;
    say_without_waiting("waiting for " + resource_ + ": " + text_of(place));
}

}  // namespace redlock::tool
