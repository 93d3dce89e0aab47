// Takes nodes down during the sale and brings them back, at fixed times.
#pragma once

#include "decimal.hpp"
#include "support/cluster.hpp"

#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace flash_sale {

/// Kills one node, freezes a second one while the first is down, then brings both back in this order. Never
/// more than two of five nodes are down at once, so a majority is always up. The killed node comes back with
/// its keys, because it writes them to disk before it replies. The safety of the lock depends on that.
class Nemesis {
public:
    using Time = std::chrono::milliseconds;  // since the start of the sale

    explicit Nemesis(redlock::support::Cluster& nodes) : nodes_(nodes) {}

    /// Describes the actions to come.
    std::string plan() const {
        return name(deeds_[0].node) + " is killed after " + in_seconds(deeds_[0].due) +
               " and comes back after " + in_seconds(deeds_[2].due) + "; " + name(deeds_[1].node) +
               " is frozen from " + in_seconds(deeds_[1].due) + " to " + in_seconds(deeds_[3].due) + ".";
    }

    /// Performs the next action if it is due. Returns its description for the log, or nothing if none was
    /// due.
    std::string act(Time now) {
        if (done() || now < deeds_[next_].due) return {};
        auto& deed = deeds_[next_++];
        deed.done = now;
        deed.perform(nodes_[deed.node]);
        return name(deed.node) + deed.what;
    }

    bool done() const { return next_ == deeds_.size(); }

    /// Describes which nodes were down, and when.
    std::vector<std::string> downtimes() const {
        const auto downtime = [](const Deed& from, const Deed& until, const std::string& how) {
            return name(from.node) + " " + how + ", " + in_seconds(from.done) + " to " +
                   in_seconds(until.done);
        };
        return {downtime(deeds_[0], deeds_[2], "killed"), downtime(deeds_[1], deeds_[3], "frozen")};
    }

private:
    using Server = redlock::support::RedisServer;
    struct Deed {
        Time due;
        std::size_t node;
        void (*perform)(Server&);
        const char* what;
        Time done{};
    };

    static std::string name(std::size_t node) { return "node " + std::to_string(node + 1); }

    redlock::support::Cluster& nodes_;
    std::array<Deed, 4> deeds_{
        Deed{Time{1'000}, 1, [](Server& node) { node.kill(); }, " killed with SIGKILL"},
        Deed{Time{2'500}, 3, [](Server& node) { node.freeze(); },
             " frozen with SIGSTOP: two of five are down"},
        Deed{Time{4'000}, 1, [](Server& node) { node.restart(); },
             " restarted, with the keys it had on disk"},
        Deed{Time{5'500}, 3, [](Server& node) { node.thaw(); }, " thawed with SIGCONT: all are up"}};
    std::size_t next_ = 0;
};

}  // namespace flash_sale
