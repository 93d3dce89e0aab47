// The work takes longer than I dare to make the ttl. How do I keep the lock, and notice that I lost it?
//
// Cut the work into steps that are short against the ttl, and extend between them. A short ttl lets others on
// soon after a crash; extending keeps them out while there is progress.
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

/// True when the next step can be made while the lock is certainly ours.
bool enough_time(redlock::Lock& lock) {
    if (lock.remaining() > 2 * longest_step) return true;
    const auto extended = lock.extend();
    // Too few nodes answered, but what was left of the old time is still ours: enough for this step?
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
