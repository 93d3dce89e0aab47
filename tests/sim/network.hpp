// How long messages take, and what stands in their way between one process and one node.
#pragma once

#include "dice.hpp"
#include "timeline.hpp"

#include <algorithm>

namespace redlock::sim {

/// What a network is like. One way takes `mean` on average and three times that at most; a share of the
/// messages up to `slow` more.
struct Weather {
    nanoseconds mean = 500us;
    double slow_share = 0;
    nanoseconds slow{};
    double breaks = 0;           ///< connections that break, a message
    nanoseconds longest_late{};  ///< how much later than that a broken connection may still deliver

    /// The longest that one way can take, connections that break left aside.
    nanoseconds longest() const noexcept { return 3 * mean + slow; }
};

/// Between one process and one node.
struct Link {
    Instant cut_until{};         ///< nothing gets through; what is sent meanwhile arrives afterwards
    nanoseconds slower_there{};  ///< added to the way of commands
    nanoseconds slower_back{};   ///< added to the way of replies

    void cut_for(nanoseconds span, Instant now) noexcept { cut_until = std::max(cut_until, now + span); }
};

enum class Way : bool { there, back };

class Network {
public:
    Network(Timeline& timeline, Dice dice) : timeline_(timeline), dice_(dice) {}

    void become(const Weather& weather) noexcept { weather_ = weather; }
    const Weather& weather() const noexcept { return weather_; }

    /// When a message arrives that is sent now, should nothing break.
    Instant arrival(const Link& link, Way way) {
        auto delay = 1us + dice_.about(weather_.mean);
        if (dice_.chance(weather_.slow_share)) delay += dice_.between(0ns, weather_.slow);
        delay += way == Way::there ? link.slower_there : link.slower_back;
        return std::max(timeline_.now(), link.cut_until) + delay;
    }
    bool breaks() { return dice_.chance(weather_.breaks); }
    nanoseconds lateness() { return dice_.about(weather_.longest_late / 3); }
    Dice& dice() noexcept { return dice_; }

private:
    Timeline& timeline_;
    Dice dice_;
    Weather weather_{};
};

}  // namespace redlock::sim
