// The fronts of locks and semaphores, over real servers. A file that includes this header is compiled for
// threads and poll() loops, and again for each Asio.
#pragma once

#include "support/any_front.hpp"
#include "support/cluster_test.hpp"

#include <redlock/redlock.hpp>
#include <redlock/semaphore.hpp>

#if defined(REDLOCK_ASIO_BOOST) || defined(REDLOCK_ASIO_STANDALONE)
#include "asio_world.hpp"

#include <redlock/asio_semaphore.hpp>
#else
#include "poll_loop.hpp"

#include <redlock/async_semaphore.hpp>
#include <redlock/watchdog.hpp>
#endif

#include <chrono>
#include <optional>
#include <utility>

namespace redlock::test {

using namespace std::chrono_literals;

/// The parts that all fronts have. `turn` does what the front does for at most 10 ms.
template <class Front, class AsyncLockType, class AsyncSemaphoreType>
class OnServers : public support::SemaphoreTest {
protected:
    using AnyLock = support::OfAnyFront<Lock, AsyncLockType>;
    using AnySemaphore = support::OfAnyFront<Semaphore, AsyncSemaphoreType>;

    template <class Condition>
    bool run_until(Condition condition) {
        return support::wait_until([&] {
            turns.one();
            return condition();
        });
    }
    bool no_key_is_left() {
        return run_until([&] { return ClusterTest::keys() == 0; });
    }

    std::optional<RedisNodes> others{};  // for lock_on()
    support::Turns turns{.one = [this] { return static_cast<Front*>(this)->turn(); }};
};

#if defined(REDLOCK_ASIO_BOOST) || defined(REDLOCK_ASIO_STANDALONE)

class InAContext : public OnServers<InAContext, asio::Lock, asio::Semaphore> {
public:
    bool turn() {
        context.restart();
        return context.run_for(10ms), true;
    }

protected:
    AnyLock lock(LockOptions options = {}) { return lock_on(nodes, std::move(options)); }
    AnyLock lock_on(RedisNodes& them, LockOptions options) {
        return {asio::Lock{context, them, "orders:42", std::move(options)}, turns};
    }
    AnySemaphore semaphore(LockOptions options) {
        return {asio::Semaphore{context, nodes, "jobs", limit, std::move(options)}, turns};
    }
    static detail::Renewer* watchdog() { return loop_watchdog(); }

    net::io_context context{};
};
using Fronts = testing::Types<InAContext>;

#else

class InALoop : public OnServers<InALoop, AsyncLock, AsyncSemaphore> {
public:
    bool turn() {
        auto& its = others_of_loop ? loop_of_others : loop;
        return its.run_once(std::chrono::steady_clock::now() + 10ms), true;
    }

protected:
    AnyLock lock(LockOptions options = {}) {
        return {AsyncLock{of_loop, "orders:42", std::move(options)}, turns};
    }
    AnyLock lock_on(RedisNodes& them, LockOptions options) {
        AsyncLock made{others_of_loop.emplace(them, loop_of_others), "orders:42", std::move(options)};
        return {std::move(made), turns};
    }
    AnySemaphore semaphore(LockOptions options) {
        return {AsyncSemaphore{of_loop, "jobs", limit, std::move(options)}, turns};
    }
    static detail::Renewer* watchdog() { return loop_watchdog(); }

    PollLoop loop{};
    AsyncNodes of_loop{nodes, loop};
    PollLoop loop_of_others{};
    std::optional<AsyncNodes> others_of_loop{};  // of lock_on()
};

class InAThread : public OnServers<InAThread, AsyncLock, AsyncSemaphore> {
public:
    static bool turn() { return true; }

protected:
    AnyLock lock(LockOptions options = {}) { return lock_on(nodes, std::move(options)); }
    static AnyLock lock_on(RedisNodes& them, LockOptions options) {
        return AnyLock{Lock{them, "orders:42", std::move(options)}};
    }
    AnySemaphore semaphore(LockOptions options) {
        return AnySemaphore{Semaphore{nodes, "jobs", limit, std::move(options)}};
    }
    detail::Renewer* watchdog() { return &of_process; }

    Watchdog of_process{};
};
using Fronts = testing::Types<InALoop, InAThread>;

#endif

}  // namespace redlock::test
