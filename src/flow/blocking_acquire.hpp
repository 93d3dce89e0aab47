// Runs the flow of an acquisition in the calling thread.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>

#include "flow.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>

namespace redlock::flow {

/// Sends the commands that a flow has left to do. While there is no memory, tries again for one node_timeout.
/// After that, the keys expire.
template <class AcquireFlow>
void release_what_is_left(Nodes& nodes, AcquireFlow& acquire, Clock& clock) {
    using namespace std::chrono_literals;
    const auto start = clock.now();
    auto now = start;
    do {  // at least once, because a Nodes of the user may have no node_timeout
        try {
            return acquire.for_each_unreleased(
                [&](const Request& request) { (void)nodes.ask(request, {.awaits_answers = false}); });
        } catch (const std::bad_alloc&) {
            clock.sleep_until(now + std::max<Clock::duration>((now - start) / 4, 1ms), {});
        }
        now = clock.now();
    } while (now < start + nodes.node_timeout());
}

/// Runs the flow to its end in this thread, as run_blocking() does. If the flow throws an exception, first
/// sends the commands that the flow has left to do. `AcquireFlow` is Acquire or AcquireLock.
template <class AcquireFlow>
std::error_code run_blocking_and_release(Operation& operation, AcquireFlow& acquire, Clock& clock) {
    std::exception_ptr failure;
    try {
        return run_blocking(operation, acquire.run());
    } catch (...) {  // no memory, or a Nodes of the user that throws
        failure = std::current_exception();
    }
    try {
        release_what_is_left(operation.nodes(), acquire, clock);
    } catch (...) {  // NOLINT(bugprone-empty-catch): a Nodes of the user that throws
    }
    std::rethrow_exception(failure);
}

}  // namespace redlock::flow
