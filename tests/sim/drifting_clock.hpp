// A clock as machines have them: it runs a little too fast or too slow, and may be set or stopped.
#pragma once

#include "timeline.hpp"

#include <cmath>

namespace redlock::sim {

class DriftingClock {
public:
    /// Shows `reading` at the beginning of the world, and runs `rate` times as fast as true time.
    explicit DriftingClock(nanoseconds reading = {}, double rate = 1) : reading_(reading), rate_(rate) {}

    nanoseconds read(Instant now) const noexcept {
        return stopped_ ? reading_ : reading_ + scaled(now - since_, rate_);
    }

    /// Returns the first instant at which the clock shows `reading` or more, provided that nobody sets it or
    /// changes its rate.
    Instant when(nanoseconds reading) const noexcept {
        if (stopped_ || reading - reading_ > never) return Instant::max();
        auto result = since_ + scaled(reading - reading_, 1 / rate_);
        while (read(result) < reading) result += 1ns;
        return result;
    }

    void step(Instant now, nanoseconds by) noexcept {
        rebase(now);
        reading_ += by;
    }
    void stop(Instant now) noexcept {
        rebase(now);
        stopped_ = true;
    }
    void go_on(Instant now) noexcept {
        if (!stopped_) return;
        since_ = now;
        stopped_ = false;
    }

private:
    static constexpr nanoseconds never = std::chrono::hours{24 * 365};

    static nanoseconds scaled(nanoseconds span, double factor) noexcept {
        if (factor == 1) return span;
        return nanoseconds{
            static_cast<nanoseconds::rep>(std::floor(static_cast<double>(span.count()) * factor))};
    }
    void rebase(Instant now) noexcept {
        reading_ = read(now);
        since_ = now;
    }

    Instant since_{};
    nanoseconds reading_;
    double rate_;
    bool stopped_ = false;
};

}  // namespace redlock::sim
