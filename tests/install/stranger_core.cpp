// A program with a Nodes of its own, which needs only redlock::core.
#include <redlock/lock.hpp>
#include <redlock/watchdog.hpp>

class WillingNodes : public redlock::Nodes {
public:
    WillingNodes() : Nodes({"a", "b", "c"}) {}

    void ask(std::span<const redlock::Request> requests, const redlock::RoundLimits&,
             std::span<redlock::Tally> tallies) override {
        for (std::size_t i = 0; i < requests.size(); ++i)
            for (std::size_t node = 0; node < size(); ++node)
                if (requests[i].to[node]) tallies[i].grant(node);
    }
};

int main() {
    WillingNodes nodes;
    redlock::Watchdog watchdog;
    redlock::Lock lock{nodes, "stranger", {.watchdog = &watchdog}};
    return lock.acquire() && lock.extend() && lock.release() ? 0 : 1;
}
