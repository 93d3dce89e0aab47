// Runs the same work in many threads at once.
#pragma once

#include <cstddef>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace redlock::support {

/// Runs `work(thread)` in this number of threads, which start together, and waits for them.
inline void in_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::latch ready{static_cast<std::ptrdiff_t>(count)};
    std::vector<std::jthread> running;
    for (std::size_t thread = 0; thread < count; ++thread)
        running.emplace_back([&work, &ready, thread] {
            ready.arrive_and_wait();
            work(thread);
        });
}

}  // namespace redlock::support
