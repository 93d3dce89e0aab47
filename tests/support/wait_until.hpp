// Waits for a condition, so that a test need not sleep for a fixed time.
#pragma once

#include <chrono>
#include <thread>

namespace redlock::support {

/// Checks `condition()` repeatedly until it is true. Returns false if it is still false after `timeout`. The
/// timeout limits a failing test and measures nothing: even a machine with thirty busy processes on two cores
/// must meet it. A test passes another timeout only if the time is part of what it checks.
template <class Condition>
[[nodiscard]] bool wait_until(Condition condition,
                              std::chrono::nanoseconds timeout = std::chrono::minutes{2}) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= deadline) return condition();
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    return true;
}

}  // namespace redlock::support
