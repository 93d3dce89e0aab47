// The work takes longer than the ttl that I want. How do I keep the lock, and notice that I lost it?
//
// Cut the work into steps that are much shorter than the ttl, and extend the lock between them. If this
// process crashes, other clients wait only for the short ttl. As long as the work makes progress, the
// extensions keep them out.
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;

constexpr auto ttl = 1s;
constexpr auto longest_step = 300ms;

void convert(int chapter) {
    std::cout << "chapter " << chapter << '\n';
    std::this_thread::sleep_for(longest_step);
}

/// Returns true if the lock is certain to be held until the next step has ended.
bool enough_time(redlock::Lock& lock) {
    if (lock.remaining() > 2 * longest_step) return true;
    const auto extended = lock.extend();
    // Too few nodes replied, but the rest of the old validity still counts. Is it enough for this step?
    if (extended.error() == redlock::Errc::no_quorum) return lock.remaining() > longest_step;
    if (!extended) std::cerr << "cannot go on: " << extended.message() << '\n';
    return static_cast<bool>(extended);
}

int main(int argc, char** argv) try {
    redlock::RedisNodes nodes{node_list(argc, argv)};
    redlock::Lock lock{nodes, "book:7", {.ttl = ttl}};
    if (const auto acquired = lock.acquire(); !acquired) {
        std::cerr << acquired.message() << '\n';
        return 1;
    }
    for (int chapter = 1; chapter <= 5; ++chapter) {
        if (!enough_time(lock)) return 1;
        convert(chapter);
    }
    return lock.release() ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
