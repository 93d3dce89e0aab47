// One round: a command to the nodes, one after the other or all at once, against the clock of the process.
#pragma once

#include "sim_nodes.hpp"

#include <array>

namespace redlock::sim {

class RoundTrip {
public:
    RoundTrip(SimNodes& nodes, const Request& request, const RoundLimits& limits, Tally& tally);
    ~RoundTrip();
    RoundTrip(const RoundTrip&) = delete;
    RoundTrip& operator=(const RoundTrip&) = delete;

    void run();

private:
    enum class Stage : std::uint8_t { uninvolved, unasked, preparing, sent, over };
    struct Exchange {
        Stage stage = Stage::uninvolved;
        std::shared_ptr<Connection> line{};
        Clock::time_point start{};
        Clock::time_point deadline{};
        bool repeated = false;  // a release that was sent anew on another connection

        bool open() const noexcept { return stage == Stage::preparing || stage == Stage::sent; }
    };

    void begin(std::size_t node, nanoseconds budget);
    void begin_all(bool suspected);
    void one_after_the_other();
    void take_line(std::size_t node);
    void await();
    void proceed(std::size_t node);
    void fail(std::size_t node, Errc cause);
    void end(std::size_t node);
    bool awaited(const Exchange& exchange) const;
    Clock::time_point next_deadline() const;
    void give_up_the_late(Clock::time_point now);
    std::size_t count(Stage stage) const;
    std::size_t open() const;
    bool decided() const;
    bool over() const;
    nanoseconds fair_share() const;

    SimNodes& nodes_;
    Process& process_;
    const RoundLimits& limits_;
    Tally& tally_;
    std::shared_ptr<const Letter> letter_;
    std::size_t size_;
    std::array<Exchange, max_nodes> exchanges_{};
};

}  // namespace redlock::sim
