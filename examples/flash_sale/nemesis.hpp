// Takes nodes down in mid-run and brings them back, at stated times.
#pragma once

#include "support/cluster.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace flash_sale {

/// One node is killed, a second one is frozen while the first is down, then they come back in that order:
/// never more than two of five at once, so a majority is always there. What was killed comes back with its
/// keys, for its data is on disk before it answers; that is what the lock's safety needs.
class Nemesis {
public:
    using Time = std::chrono::milliseconds;  // since the sale began

    explicit Nemesis(redlock::support::Cluster& nodes) : nodes_(nodes) {}

    /// What it is going to do.
    std::string plan() const;

    /// Does what is due. What it did, for the log; empty when nothing was.
    std::string act(Time now);

    bool done() const { return next_ == deeds_.size(); }

    /// Which nodes were down when.
    std::vector<std::string> downtimes() const;

private:
    enum class Verb { kill, freeze, restart, thaw };
    struct Deed {
        Time due;
        Verb verb;
        std::size_t node;
        Time done{};
    };

    std::string perform(const Deed& deed);

    redlock::support::Cluster& nodes_;
    std::vector<Deed> deeds_{{Time{1'000}, Verb::kill, 1},
                             {Time{2'500}, Verb::freeze, 3},
                             {Time{4'000}, Verb::restart, 1},
                             {Time{5'500}, Verb::thaw, 3}};
    std::size_t next_ = 0;
};

}  // namespace flash_sale
