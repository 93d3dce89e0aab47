// One round of many extensions: to each node they go one behind the other, over one connection.
//
// A node has one budget for all of them. One that has answered some of them in it is alive: the rest are
// tried again in another round.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>

#include "connection.hpp"
#include "node.hpp"
#include "roster.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace redlock {

class Pipeline {
public:
    Pipeline(std::span<const std::unique_ptr<Node>> nodes, Roster& roster,
             std::span<const Request> extensions, Clock::time_point deadline,
             std::chrono::milliseconds node_timeout, std::span<Tally> tallies);
    ~Pipeline();
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;

    /// Returns when every extension is decided, or nobody can decide it any more.
    void run();

private:
    /// The part of one node.
    struct Exchange {
        enum class Stage : std::uint8_t { uninvolved, preparing, sent, over };
        Stage stage = Stage::uninvolved;
        bool trusted = false;
        std::unique_ptr<Connection> connection{};
        std::vector<std::size_t> which{};  // of the extensions, in the order sent
        std::vector<Command> commands{};   // the same
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

    void begin(std::size_t node);
    void choose(std::size_t node);
    void leave_alone(std::size_t node);
    void proceed(std::size_t node);
    bool is_a_twin(std::size_t node);
    void take_answers(std::size_t node);
    void count(std::size_t node, std::size_t extension, Vote vote, std::error_code cause, std::string detail);
    void fail(std::size_t node, std::error_code cause, const std::string& detail);
    void end(std::size_t node, std::error_code cause, const std::string& detail);

    bool awaits(const Exchange& exchange) const noexcept;
    Clock::time_point next_deadline() const;
    void shorten_the_wait_for_the_unsent();
    void poll_until(Clock::time_point until, Clock::time_point now);
    void give_up_the_late(Clock::time_point now);

    std::span<Exchange> exchanges() noexcept { return {exchanges_.data(), nodes_.size()}; }
    std::span<const Exchange> exchanges() const noexcept { return {exchanges_.data(), nodes_.size()}; }
    bool decided(const Count& count) const noexcept;

    std::span<const std::unique_ptr<Node>> nodes_;
    Roster& roster_;
    std::span<const Request> extensions_;
    Clock::time_point deadline_;
    Clock::duration node_timeout_;
    std::span<Tally> tallies_;
    std::vector<Count> counts_;
    std::size_t undecided_ = 0;
    std::array<Exchange, max_nodes> exchanges_{};
};

}  // namespace redlock
