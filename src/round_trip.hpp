// One round: a command to the nodes, one after the other or all at once, against the clock.
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

namespace redlock {

class RoundTrip {
public:
    RoundTrip(std::span<const std::unique_ptr<Node>> nodes, Roster& roster, const Request& request,
              const RoundLimits& limits, std::chrono::milliseconds node_timeout, Tally& tally);
    ~RoundTrip();
    RoundTrip(const RoundTrip&) = delete;
    RoundTrip& operator=(const RoundTrip&) = delete;

    /// The page's step 2: in turn, each for its budget at most. Suspected nodes come last. Stops as soon as a
    /// majority has become impossible; goes on to every node when it is reached.
    void one_after_the_other();

    /// To all nodes, then from all nodes. Stops waiting as soon as the votes decide.
    void all_at_once();

    /// The same, but waits for every trusted node to answer.
    void all_at_once_to_the_end();

private:
    /// The part of one node.
    struct Exchange {
        enum class Stage : std::uint8_t { uninvolved, unasked, left_alone, preparing, sent, over };
        Stage stage = Stage::uninvolved;
        bool trusted = true;
        bool due = false;       // suspected, and its next probe is due
        bool repeated = false;  // a release that was sent anew on another connection
        std::unique_ptr<Connection> connection{};
        Clock::time_point start{};
        Clock::time_point deadline{};

        bool unasked() const noexcept { return stage == Stage::unasked || stage == Stage::left_alone; }
        bool open() const noexcept { return stage == Stage::preparing || stage == Stage::sent; }
    };

    enum class Awaited : std::uint8_t {
        while_undecided,  ///< whoever can still change the outcome
        trusted_nodes     ///< the trusted nodes in any case, the suspected while the votes are undecided
    };

    Clock::duration fair_share() const;
    void begin(std::size_t node, Clock::duration budget);
    void lend_to(std::size_t node);
    void begin_trusted();
    void begin_suspected();
    void wait_for(std::size_t node);
    void finish(Awaited awaited);
    void await(Awaited awaited, Clock::time_point longest = Clock::never());
    void shorten_the_wait_for_the_unsent();
    bool awaits(const Exchange& exchange, Awaited awaited) const;
    Clock::time_point next_deadline(Awaited awaited) const;
    void give_up_the_late(Awaited awaited, Clock::time_point now);
    void poll_until(Clock::time_point until, Clock::time_point now);
    void proceed(std::size_t node);
    bool is_a_twin(std::size_t node);
    void look_for_answer(std::size_t node);
    void take_answer(std::size_t node);
    void leave_alone(std::size_t node);
    void fail(std::size_t node, std::error_code cause, std::string detail);
    void end(std::size_t node, Vote vote, std::error_code cause, std::string detail = {});
    std::span<const Exchange> exchanges() const noexcept { return {exchanges_.data(), nodes_.size()}; }
    std::size_t open() const noexcept;
    std::size_t unasked() const noexcept;
    bool refused_to_acquire() const noexcept;
    bool worth_asking(const Exchange& exchange) const noexcept;
    bool over() const;
    bool impossible() const noexcept;
    bool decided() const noexcept;

    std::span<const std::unique_ptr<Node>> nodes_;
    Roster& roster_;
    const Command& command_;
    const RoundLimits& limits_;
    Clock::duration node_timeout_;
    Tally& tally_;
    std::array<Exchange, max_nodes> exchanges_{};
    Clock::time_point end_ = Clock::never();  // of what is asked from now on
    bool half_over_ = false;                  // those that are open are not counted on any more
};

}  // namespace redlock
