// I cannot tell how long the work takes, nor cut it into steps. How do I keep the lock, and stop when it is
// lost?
//
// A watchdog extends it from a thread of its own, and stops a token when it no longer can: hand that to the
// work. The ttl is what a crash costs others, so it is short; max_hold is what a stuck worker costs them.
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;

/// Five times the ttl; true if it was done to its end.
bool print_report(const std::stop_token& stop) {
    for (int page = 1; page <= 10; ++page) {
        if (stop.stop_requested()) return false;
        std::cout << "page " << page << '\n';
        std::this_thread::sleep_for(500ms);
    }
    return true;
}

int main(int argc, char** argv) try {
    redlock::RedisNodes nodes{node_list(argc, argv)};
    redlock::Watchdog watchdog;  // one for all locks of a process
    redlock::Lock lock{nodes,
                       "report:nightly",
                       {.ttl = 1s, .watchdog = &watchdog, .max_hold = 1min, .on_lost = [](const auto& loss) {
                            std::cerr << "lost: " << loss.message() << '\n';
                        }}};
    if (const auto acquired = lock.acquire(); !acquired) {
        std::cerr << acquired.message() << '\n';
        return 1;
    }
    if (!print_report(lock.lost())) return 1;
    return lock.release() ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
