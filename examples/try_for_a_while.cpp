// How do I wait for the lock with a time limit, and how do I cancel the wait from elsewhere?
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;

const redlock::LockOptions quick{.ttl = 10s, .retry = {.delay = 50ms}};

/// Acquires the lock as another client, and holds it for another 300 ms.
std::jthread somebody_busy(redlock::Nodes& nodes) {
    redlock::Lock theirs{nodes, "report:daily", quick};
    theirs.lock();
    return std::jthread{[theirs = std::move(theirs)]() mutable {
        std::this_thread::sleep_for(300ms);
        theirs.unlock();
    }};
}

int main(int argc, char** argv) try {
    redlock::RedisNodes nodes{node_list(argc, argv)};
    const auto somebody = somebody_busy(nodes);
    redlock::Lock lock{nodes, "report:daily", quick};

    const auto soon = lock.acquire_for(100ms);
    std::cout << "within 100 ms: " << soon.message() << '\n';

    std::stop_source shutdown;
    shutdown.request_stop();  // for example by the thread that handles signals
    const auto stopped = lock.acquire_for(10s, shutdown.get_token());
    std::cout << "while shutting down: " << stopped.message() << '\n';

    const auto later = lock.acquire_for(5s);
    std::cout << "within 5 s: " << later.message() << '\n';

    const bool as_told =
        soon.error() == redlock::Errc::held_by_other && stopped.error() == redlock::Errc::cancelled && later;
    return as_told ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
