// Tells the user of `redlock run` and `redlock acquire` what an acquisition waits for: how long the queue is,
// how long the lock is held, and whether too few nodes answer.
#pragma once

#include <redlock/observer.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace redlock::tool {

/// Returns for example "held for at most 12 s more, 3 in front".
std::string text_of(const QueuePlace& place);

/// Observes one acquisition, whose rounds all run in one thread.
class WaitReporter final : public Observer {
public:
    /// If `says`, prints the place in the queue on stderr whenever it changes, or without a queue once that
    /// the resource is held. If `waits`, prints once that too few nodes answer, and once that the resource
    /// `held`, which the caller has locked, is one of those that are refused.
    WaitReporter(std::string resource, bool says, bool waits, std::string held = {})
        : resource_(std::move(resource)), says_(says), waits_(waits), held_(std::move(held)) {}

    void round_ended(const Command& command, const Tally& tally,
                     std::chrono::nanoseconds took) noexcept override;

private:
    void say(const QueuePlace& place);
    void record_refusal(const Command& command, const Tally& tally);

    const std::string resource_;
    const bool says_;
    const bool waits_;
    const std::string held_;
    int failed_ = 0;  // consecutive attempts without a quorum of answers
    bool waiting_said_ = false;
    std::optional<std::string> refused_;   // the first resource that was refused
    std::optional<std::size_t> in_front_;  // as printed last
};

}  // namespace redlock::tool
