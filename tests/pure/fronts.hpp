// The two fronts of a lock: Lock blocks the calling thread, and AsyncLock works in an event loop. A test of a
// promise that both make has a Front as its parameter, and uses AnyLock:
//
//     struct Release : testing::TestWithParam<Front> {
//         AnyWorld world{GetParam()};
//         AnyLock lock = world.held();
//     };
//     INSTANTIATE_TEST_SUITE_P(Each, Release, each_front, testing::PrintToStringParamName());
#pragma once

#include "support/any_front.hpp"
#include "virtual_loop.hpp"
#include "world.hpp"

#include "lock/blocking_renewals.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/async_nodes.hpp>
#include <redlock/async_semaphore.hpp>
#include <redlock/semaphore.hpp>

#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

namespace redlock::test {

enum class Front { thread, loop };

inline void PrintTo(Front front, std::ostream* out) {
    *out << (front == Front::thread ? "thread" : "loop");
}
inline const auto each_front = testing::Values(Front::thread, Front::loop);

using AnyLock = support::OfAnyFront<Lock, AsyncLock>;
using AnySemaphore = support::OfAnyFront<Semaphore, AsyncSemaphore>;

/// A world in which the locks belong to one front.
template <class Base>
class WorldOfAnyFront : public Base {
public:
    template <class... Arguments>
    explicit WorldOfAnyFront(Front of, Arguments... arguments) : Base(arguments...), front(of) {}

    AnyLock lock(LockOptions options = {}) { return lock(the_resource, std::move(options)); }
    AnyLock lock(ResourceList resources, LockOptions options = {}) {
        if (front == Front::loop)
            return {AsyncLock{of_loop, std::move(resources), std::move(options)}, turns};
        return AnyLock{Lock{*this, std::move(resources), std::move(options), this->clock, this->entropy}};
    }
    /// Returns a lock that is held.
    AnyLock held(LockOptions options = {}) { return held(the_resource, std::move(options)); }
    AnyLock held(ResourceList resources, LockOptions options = {}) {
        auto result = lock(std::move(resources), std::move(options));
        EXPECT_THAT(result.acquire(), Succeeds());
        return result;
    }
    AnySemaphore semaphore(std::string_view name, std::size_t limit, LockOptions options) {
        if (front == Front::loop) return {AsyncSemaphore{of_loop, name, limit, std::move(options)}, turns};
        return AnySemaphore{Semaphore{*this, name, limit, std::move(options), this->clock, this->entropy}};
    }

    detail::Renewer* watchdog() { return front == Front::loop ? loop_watchdog() : &queue; }

    /// Advances the time. Meanwhile the watchdog extends, and the loop runs.
    void pass(Clock::duration span) {
        const auto end = this->clock.now() + span;
        for (auto next = queue.make_pass(); next <= end; next = queue.make_pass()) {
            this->clock.advance_to(next);
            if (++renewals > 100'000) throw std::runtime_error("the watchdog never comes to rest");
        }
        while (loop.run_once(end)) {
        }
        this->clock.advance_to(end);
    }

    const Front front;
    VirtualLoop loop{this->clock};
    AsyncNodes of_loop{*this, loop, this->clock, this->entropy};
    const support::Turns turns{.one = [this] { return loop.run_once(); },
                               .due = [this] { return loop.run_once(this->clock.now()); }};
    detail::BlockingRenewals queue{this->clock};
    int renewals = 0;
};

using AnyWorld = WorldOfAnyFront<World>;

}  // namespace redlock::test
