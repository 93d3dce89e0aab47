// redlock run --fair while it waits: says who is in front and for how long, and when the nodes are to blame.
#pragma once

#include <redlock/observer.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace redlock::tool {

/// "held for at most 12 s more, 3 in front"
std::string text_of(const QueuePlace& place);

/// Of one acquisition, whose rounds are all in one thread.
class QueueReporter final : public Observer {
public:
    /// `says`: whether it says on stderr where we stand in the queue.
    QueueReporter(std::string resource, bool says) : resource_(std::move(resource)), says_(says) {}

    void round_ended(const Command& command, const Tally& tally,
                     std::chrono::nanoseconds took) noexcept override;

private:
    void say(const QueuePlace& place);

    const std::string resource_;
    const bool says_;
    int failed_ = 0;                       // attempts since a quorum last answered
    std::optional<std::size_t> in_front_;  // as said last
};

}  // namespace redlock::tool
