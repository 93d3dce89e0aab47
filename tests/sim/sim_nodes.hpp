// The seam of the network: redlock's Nodes as one process has them, over connections that are kept between
// the rounds. It does what RedisNodes does, as far as an algorithm can tell: budgets, deadlines, early
// decisions, releases behind the SET they belong to (rule B5), nodes that are left alone after a failure.
#pragma once

#include "connection.hpp"
#include "network.hpp"
#include "process.hpp"
#include "sim_node.hpp"

#include <redlock/nodes.hpp>
#include <redlock/redis_nodes.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::sim {

struct SimNodesOptions {
    milliseconds node_timeout{50};
    milliseconds quarantine{0};
    Round round = Round::sequential;
    bool backs_off = true;  ///< leaves nodes alone for a while that have failed
};

class SimNodes final : public Nodes {
public:
    SimNodes(Process& process, Network& network, const std::vector<std::unique_ptr<SimNode>>& nodes,
             Dice dice, SimNodesOptions options);

    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) override;

    Link& link(std::size_t node) { return sites_[node].link; }

    /// The process has died: the connections die with it.
    void abandon();

    // ---- What was asked, for those who check it.

    /// When the last round began, and ended, that was to give `owner` its validity.
    struct Asked {
        Clock::time_point began{};
        Clock::time_point ended{};
    };
    Asked asked(std::string_view owner) const;

    /// Who signed the claims of the fiber that runs, since it last asked.
    std::vector<std::string> take_claims();

    /// Its lock was released: nothing that would lengthen the life of its keys is sent any more (rule B7), or
    /// else whoever waits for that hears of it.
    void is_over(std::string owner) { over_.insert(std::move(owner)); }
    void on_late_extension(std::function<void(std::string_view owner)> action) {
        on_late_extension_ = std::move(action);
    }

private:
    friend class BatchTrip;
    friend class RoundTrip;
    using Line = std::shared_ptr<Connection>;

    /// What the process has of one node.
    struct Site {
        SimNode* node;
        Link link{};
        std::vector<Line> idle{};
        std::vector<Line> owing{};
        int failures = 0;
        bool suspected = false;
        Clock::time_point next_probe{};
    };

    void tidy(Site& site);
    Line connect(Site& site);
    Line line_for(Site& site, const Letter& letter);
    void give_back(Site& site, Line line);
    void failed(Site& site);
    void send(Connection& line, const std::shared_ptr<const Letter>& letter);

    Process& process_;
    Network& network_;
    Dice dice_;
    SimNodesOptions options_;
    std::deque<Site> sites_{};
    std::map<std::string, Asked, std::less<>> asked_{};
    std::vector<std::pair<Task*, std::string>> claims_{};
    std::set<std::string, std::less<>> over_{};
    std::function<void(std::string_view)> on_late_extension_{};
};

}  // namespace redlock::sim
