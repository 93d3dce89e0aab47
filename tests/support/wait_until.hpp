// Waiting for a condition: the one place of the tests that sleeps.
#pragma once

#include <chrono>
#include <thread>

namespace redlock::support {

/// Looks again and again until `condition()` is true; false if it still is not after `timeout`. The timeout
/// is there to fail, not to measure: a machine with thirty busy processes on two cores has to keep it. Tests
/// give another one only if the time is part of what they claim.
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
