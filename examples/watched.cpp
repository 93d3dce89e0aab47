// I cannot predict how long the work takes, nor cut it into steps. How do I keep the lock, and stop if I lose
// it?
//
// A watchdog extends the lock from a thread of its own. If it fails to do so, it requests stop on the token
// that lost() returns: pass this token to the work. Choose a short ttl, because other clients wait for it
// after a crash. Choose max_hold as the longest time that a worker that hangs may keep the lock.
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;

/// Takes five times the ttl. Returns true if it printed all pages.
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
    redlock::Watchdog watchdog;  // one watchdog for all locks of the process
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
