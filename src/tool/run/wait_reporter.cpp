#include "wait_reporter.hpp"

#include "text/words.hpp"
#include "wire/verbs.hpp"

#include <redlock/algorithm/algorithm.hpp>

#include <algorithm>

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
        const bool refused = algorithm::ruled_out(tally) || algorithm::refused_by_holders(tally);
        const bool answered = refused || tally.granted() >= quorum(tally.size());
        failed_ = answered ? 0 : failed_ + 1;
        if (refused) record_refusal(command, tally);
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

/// Most waits are over at the second attempt. A semaphore tries its other slots before it waits, so the
/// second attempt is the one at the same resource.
void WaitReporter::record_refusal(const Command& command, const Tally& tally) {
    const auto resource = command.resources.empty() ? std::string{} : command.resources.front();
    if (!refused_ && waits_ && std::ranges::count(command.resources, held_) > 0)
        say_without_waiting("this process runs under a lock of " + held_ +
                            " already, and may wait for itself");
    const bool again = refused_ == resource;
    if (!refused_) refused_ = resource;
    if (!again || !says_ || !waits_ || waiting_said_ || in_front_) return;
    waiting_said_ = true;
    say_without_waiting("waiting for " + resource_ + ": " +
                        Result{Errc::held_by_other, Tally{tally}, 1, {}}.message());
}

}  // namespace redlock::tool
