// Lets allocations of the program fail on demand. One source file of the program includes this header.
#pragma once

#include "replaced_new.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <new>
#include <string>

namespace redlock::support {

/// A shortage of memory. The program has at most one at a time.
struct Shortage {
    static constexpr long never = -1;
    static constexpr long for_good = std::numeric_limits<long>::max();

    long until_failure = never;  // how many allocations succeed before the next failure
    long failures_left = 0;      // how many allocations fail then, one after the other
    bool has_failed = false;     // whether an allocation has failed

    void begin(long first, long failures = 1) {
        until_failure = first;
        failures_left = failures;
    }
    void end() { until_failure = never; }
};
inline Shortage shortage;

// NOLINTNEXTLINE(misc-definitions-in-headers): one source file includes it
void before_allocation() {
    if (shortage.until_failure < 0 || shortage.until_failure-- > 0) return;
    shortage.has_failed = true;
    shortage.until_failure = --shortage.failures_left > 0 ? 0 : Shortage::never;
    throw std::bad_alloc{};
}

/// Calls `test(starve)` again and again. In the first call, the first allocation in each `starve(action)`
/// fails, in the second call the second one, and so on, until no allocation has failed. With `failures`, so
/// many fail, one after the other. Expects that at least `expected` allocations have failed.
template <class Test>
void at_each_allocation(long expected, Test test, long failures = 1, long step = 1) {
    long first = 0;
    for (bool failed = true; failed && !testing::Test::HasFatalFailure(); first += step) {
        const testing::ScopedTrace trace{__FILE__, __LINE__,
                                         "failure of allocation " + std::to_string(first)};
        shortage.has_failed = false;
        test([&](auto action) {
            shortage.begin(first, failures);
            action();
            shortage.end();
        });
        failed = shortage.has_failed;
    }
    EXPECT_GT(first, expected) << "too little was allocated: this shows nothing";
}

}  // namespace redlock::support
