// Delays and partitions between one process and one node.
#pragma once

#include "rng.hpp"
#include "timeline.hpp"

#include <algorithm>

namespace redlock::sim {

/// A message takes `mean` on average, and at most three times as long. A share of the messages takes up to
/// `slow` in addition.
struct NetworkConditions {
    nanoseconds mean = 500us;
    double slow_share = 0;
    nanoseconds slow{};
    double breaks = 0;           ///< the probability that a message breaks its connection
    nanoseconds longest_late{};  ///< the most by which a broken connection delays a message further
    double parts = 0;            ///< the probability that a socket accepts only a part of the bytes

    /// The longest delay of one message, unless its connection breaks.
    nanoseconds longest() const noexcept { return 3 * mean + slow; }
};

/// The link between one process and one node.
struct Link {
    Instant cut_until{};             ///< until then nothing is transmitted; it arrives afterwards
    nanoseconds delay_to_node{};     ///< an additional delay of commands
    nanoseconds delay_to_process{};  ///< an additional delay of replies

    void cut_for(nanoseconds span, Instant now) noexcept { cut_until = std::max(cut_until, now + span); }
};

enum class Direction : bool { to_node, to_process };

class Network {
public:
    Network(Timeline& timeline, Rng rng) : timeline_(timeline), rng_(rng) {}

    void set_conditions(const NetworkConditions& conditions) noexcept { conditions_ = conditions; }
    const NetworkConditions& conditions() const noexcept { return conditions_; }

    /// Returns when a message that is sent now arrives, if the connection does not break.
    Instant arrival(const Link& link, Direction direction) {
        auto delay = 1us + rng_.about(conditions_.mean);
        if (rng_.chance(conditions_.slow_share)) delay += rng_.between(0ns, conditions_.slow);
        delay += direction == Direction::to_node ? link.delay_to_node : link.delay_to_process;
        return std::max(timeline_.now(), link.cut_until) + delay;
    }
    bool breaks() { return rng_.chance(conditions_.breaks); }
    /// Returns how many of these bytes a socket accepts at once.
    std::size_t accepts(std::size_t bytes) {
        return rng_.chance(conditions_.parts) ? rng_.below(bytes + 1) : bytes;
    }
    nanoseconds lateness() { return rng_.about(conditions_.longest_late / 3); }
    Rng& rng() noexcept { return rng_; }

private:
    Timeline& timeline_;
    Rng rng_;
    NetworkConditions conditions_{};
};

}  // namespace redlock::sim
