// redlock run --fair while it waits: says who is in front and for how long, and notices when the nodes are to
// blame.
#pragma once

#include <redlock/observer.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace redlock::tool {

/// "held for at most 12 s more, 3 in front"
std::string text_of(const QueuePlace& place);

/// Of one acquisition, whose rounds are all in one thread.
class QueueReporter final : public Observer {
public:
    /// `says`: whether it says on stderr where we stand in the queue. `attempts`: how many in a row may find
    /// no quorum.
    QueueReporter(std::string resource, bool says, int attempts)
        : resource_(std::move(resource)), says_(says), attempts_(attempts) {}

    void round_ended(const Command& command, const Tally& tally,
                     std::chrono::nanoseconds took) noexcept override;

    /// Stops when more attempts are not worth making.
    std::stop_source& without_quorum() noexcept { return without_quorum_; }

private:
    void say(const QueuePlace& place);

    const std::string resource_;
    const bool says_;
    const int attempts_;
    int failed_ = 0;                       // attempts since a quorum last answered
    std::optional<std::size_t> in_front_;  // as said last
    std::stop_source without_quorum_{};
};

}  // namespace redlock::tool
