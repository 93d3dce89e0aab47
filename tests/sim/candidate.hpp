// An AsyncLeader in the event loop of a simulated process. A fiber does the work of its terms.
#pragma once

#include "at_work.hpp"
#include "client.hpp"
#include "process.hpp"
#include "rng.hpp"
#include "sim_loop.hpp"

#include <redlock/async_leader.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace redlock::sim {

/// It lives until its leader has ended run(), which may be later than the fiber. At any callback, the loop
/// may cancel or destroy the leader.
class Candidate : public std::enable_shared_from_this<Candidate> {
public:
    /// `disturbs` is the probability that a callback cancels or destroys the leader.
    Candidate(Client& client, SimLoop& loop, LeaderOptions options, Rng rng, double disturbs);

    /// The run() of the leader, from its begin until no function of the leader is used any more.
    class Run : detail::NotCopied {
    public:
        explicit Run(std::shared_ptr<Candidate> candidate);
        ~Run();

    private:
        const std::shared_ptr<Candidate> candidate_;
    };

    // ---- For the fibers.
    /// Blocks until a term has begun, and returns its lost(). Returns nothing if run() has ended.
    std::optional<std::stop_token> wait_for_a_term();
    void end_term(bool has_failed);
    /// Cancels or destroys the leader.
    void stop();

private:
    void begin();
    void leave();
    void elected(AsyncTerm term);
    void failed(const Result& result);
    void ended();
    void shut_down();
    void disturb();
    void stop_in_loop(bool destroys);
    void expect_gone(std::string owner);

    Client& client_;
    SimLoop& loop_;
    LeaderOptions options_;
    Rng rng_;
    const double disturbs_;
    Task& fiber_;

    std::optional<AsyncLeader> leader_{};
    std::optional<AsyncTerm> term_{};
    std::optional<AtWork> at_work_{};
    std::optional<Stopwatch> stopped_{};  // since run() has to end, apart from the work
    bool over_ = false;
    const SimLoop::Destroy at_shutdown_ = [this] { shut_down(); };
};

}  // namespace redlock::sim
