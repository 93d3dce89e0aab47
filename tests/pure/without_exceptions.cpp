// A user's program that is compiled with -fno-exceptions can include all public headers and use locks. The
// library itself is compiled with exceptions. If it throws, such a program ends.
#include <redlock/redlock.hpp>

#include <chrono>
#include <cstddef>
#include <span>

namespace {

using namespace std::chrono_literals;

class ThreeWillingNodes : public redlock::Nodes {
public:
    ThreeWillingNodes() : Nodes({"a", "b", "c"}) {}
    void ask(std::span<const redlock::Request> requests, const redlock::RoundLimits& /*limits*/,
             std::span<redlock::Tally> tallies) override {
        for (std::size_t i = 0; i < requests.size(); ++i)
            for (std::size_t node = 0; node < size(); ++node)
                if (requests[i].to[node]) tallies[i].grant(node);
    }
};

bool locks(redlock::Nodes& nodes) {
    redlock::Lock lock{nodes, "orders:42"};
    return lock.acquire_for(1s) && lock.extend() && lock.release();
}

bool locks_twice(redlock::Nodes& nodes) {
    redlock::RecursiveLock lock{nodes, "orders:42"};
    lock.lock();
    const bool again = lock.try_lock_for(1s);
    const bool twice = again && lock.level() == 2;
    lock.unlock();
    lock.unlock();
    return twice && lock.level() == 0;
}

}  // namespace

int main() {
    ThreeWillingNodes nodes;
    return locks(nodes) && locks_twice(nodes) ? 0 : 1;
}
