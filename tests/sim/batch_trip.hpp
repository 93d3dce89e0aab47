// One round of many extensions: to each node they go one behind the other, over one connection, within one
// budget, as the Pipeline of RedisNodes sends them.
#pragma once

#include "sim_nodes.hpp"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace redlock::sim {

class BatchTrip {
public:
    BatchTrip(SimNodes& nodes, std::span<const Request> extensions, Clock::time_point deadline,
              std::span<Tally> tallies);
    ~BatchTrip();
    BatchTrip(const BatchTrip&) = delete;
    BatchTrip& operator=(const BatchTrip&) = delete;

    /// Until every extension is decided, or nobody can decide it any more.
    void run();

private:
    enum class Stage : std::uint8_t { uninvolved, preparing, sent, over };
    /// The part of one node.
    struct Exchange {
        Stage stage = Stage::uninvolved;
        bool trusted = false;
        std::shared_ptr<Connection> line{};
        std::vector<std::size_t> which{};  // of the extensions, in the order sent
        std::size_t first = 0;             // its number among all that was sent over the line
        std::size_t answered = 0;
        Clock::time_point start{};
        Clock::time_point deadline{};

        bool open() const noexcept { return stage == Stage::preparing || stage == Stage::sent; }
    };
    /// How the votes on one extension stand.
    struct Count {
        std::size_t granted = 0;
        std::size_t pending = 0;  // nodes that may yet grant it
    };

    void note() const;
    void begin(std::size_t node);
    void choose(std::size_t node);
    void proceed(std::size_t node);
    void take_answers(std::size_t node);
    void count(std::size_t node, std::size_t extension, Vote vote, std::error_code cause);
    void fail(std::size_t node, Errc cause);
    void end(std::size_t node, Errc cause);
    bool awaits(const Exchange& exchange) const;
    void shorten_the_wait_for_the_unsent();
    Clock::time_point next_deadline() const;
    void give_up_the_late(Clock::time_point now);
    bool decided(const Count& count) const;
    bool all_decided() const;

    SimNodes& nodes_;
    Process& process_;
    std::span<const Request> extensions_;
    Clock::time_point deadline_;
    std::span<Tally> tallies_;
    std::vector<std::shared_ptr<const Letter>> letters_{};
    std::vector<Count> counts_;
    std::size_t size_;
    std::array<Exchange, max_nodes> exchanges_{};
};

}  // namespace redlock::sim
