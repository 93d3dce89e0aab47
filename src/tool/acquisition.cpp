#include "acquisition.hpp"

#include "os/scoped_signal_block.hpp"

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/retry.hpp>

#include <chrono>
#include <exception>
#include <stop_token>
#include <thread>

namespace redlock::tool {
namespace {

/// For as long as others hold it. The attempts count only where the nodes are to blame.
Result outlast(AnyLock& lock, const AcquireArguments& arguments, const std::stop_token& stop) {
    for (;;) {
        auto result = lock.acquire(stop);
        if (result || result.error() != Errc::held_by_other) return result;
        const auto pause = random_pause(arguments.retry_delay, os_entropy());
        boot_clock().sleep_until(boot_clock().now() + pause, stop);
    }
}

/// The same in one acquisition, for another one would begin at the end of the queue.
Result outlast_in_queue(AnyLock& lock, QueueReporter& queue, const std::stop_token& stop) {
    auto& give_up = queue.without_quorum();
    const std::stop_callback stopped{stop, [&] { give_up.request_stop(); }};
    auto result = lock.acquire_for(Clock::duration::max(), give_up.get_token());
    if (result.error() == Errc::cancelled && !stop.stop_requested())
        result.conclude(Errc::no_quorum, result.attempts());
    return result;
}

Result acquire_as_told(AnyLock& lock, const AcquireArguments& arguments, QueueReporter* queue,
                       const std::stop_token& stop) {
    if (arguments.once()) return lock.try_acquire();
    if (arguments.wait) return lock.acquire_for(*arguments.wait, stop);
    return queue ? outlast_in_queue(lock, *queue, stop) : outlast(lock, arguments, stop);
}

}  // namespace

Acquisition acquire(AnyLock& lock, const AcquireArguments& arguments, QueueReporter* queue,
                    EventPipe& events) {
    Acquisition acquisition{Result{Errc::cancelled}};
    std::exception_ptr failure;
    std::jthread worker;
    {
        const ScopedSignalBlock blocked;
        worker = std::jthread{[&](const std::stop_token& stop) {
            try {
                acquisition.result = acquire_as_told(lock, arguments, queue, stop);
            } catch (...) {
                failure = std::current_exception();
            }
            EventPipe::post(EventPipe::finished);
        }};
    }
    for (;;) {
        const auto event = events.wait().value_or(EventPipe::loss);
        if (event == EventPipe::finished) break;
        if (event == EventPipe::loss) continue;  // the acquisition is over already, and has told so
        acquisition.interrupted = event;
        worker.request_stop();
    }
    worker.join();
    if (failure) std::rethrow_exception(failure);
    return acquisition;
}

}  // namespace redlock::tool
