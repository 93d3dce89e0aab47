// The fronts of locks and semaphores, over real servers, and a loop that a test runs step by step. A file
// that includes this header is compiled for threads and poll() loops, and again for each Asio.
#pragma once

#include "support/any_front.hpp"
#include "support/cluster_test.hpp"

#include <redlock/redlock.hpp>
#include <redlock/semaphore.hpp>

#if defined(REDLOCK_ASIO_BOOST) || defined(REDLOCK_ASIO_STANDALONE)
#include "asio_world.hpp"

#include <redlock/asio_leader.hpp>
#include <redlock/asio_semaphore.hpp>
#else
#include "poll_loop.hpp"

#include <redlock/async_leader.hpp>
#include <redlock/async_semaphore.hpp>
#include <redlock/watchdog.hpp>
#endif

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
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

using LockInSteps = asio::Lock;
using SemaphoreInSteps = asio::Semaphore;
using LeaderInSteps = asio::Leader;

/// The context of SteppedLoop.
class LoopInSteps {
public:
    explicit LoopInSteps(RedisNodes& nodes) : nodes_(nodes) {}

    template <class Type, class... Arguments>
    void emplace(std::optional<Type>& object, Arguments... arguments) {
        object.emplace(*context_, nodes_, std::move(arguments)...);
    }
    template <class Type, class Work, class Done>
    void begin(Type& object, Work work, Done done) {
        auto bound = net::bind_cancellation_slot(signal_.slot(), std::move(done));
        if constexpr (std::is_same_v<Type, asio::Leader>)
            object.async_run(std::move(work), std::move(bound));
        else
            object.async_acquire(std::move(bound));
    }
    void cancel(auto&) { signal_.emit(net::cancellation_type::terminal); }
    void step() {
        (void)context_->run_one_for(1ms);
        context_->restart();
    }
    void run() {
        context_->run();
        context_->restart();
    }
    void end() { context_.reset(); }

private:
    RedisNodes& nodes_;
    std::unique_ptr<net::io_context> context_ = std::make_unique<net::io_context>();
    net::cancellation_signal signal_{};
};

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

using LockInSteps = AsyncLock;
using SemaphoreInSteps = AsyncSemaphore;
using LeaderInSteps = AsyncLeader;

/// The poll() loop of SteppedLoop.
class LoopInSteps {
public:
    explicit LoopInSteps(RedisNodes& nodes) : of_loop_{std::in_place, nodes, loop_} {}

    template <class Type, class... Arguments>
    void emplace(std::optional<Type>& object, Arguments... arguments) {
        object.emplace(*of_loop_, std::move(arguments)...);
    }
    template <class Type, class Work, class Done>
    void begin(Type& object, Work work, Done done) {
        if constexpr (std::is_same_v<Type, AsyncLeader>)
            object.run(std::move(work), std::move(done));
        else
            object.acquire(std::move(done));
    }
    static void cancel(auto& object) { object.cancel(); }
    void step() { (void)loop_.run_once(); }
    void run() { loop_.run(); }
    void end() {
        of_loop_.reset();
        EXPECT_FALSE(loop_.run_once());
    }

private:
    PollLoop loop_{};
    std::optional<AsyncNodes> of_loop_;
};

#endif

/// An object in a loop. The test begins its operation, and runs the loop step by step.
template <class Type>
class SteppedLoop {
public:
    template <class... Arguments>
    explicit SteppedLoop(RedisNodes& nodes, Arguments... arguments) : loop_{nodes} {
        loop_.emplace(object_, std::move(arguments)...);
    }

    void begin(std::function<void()> done) {
        loop_.begin(
            *object_, [this](AsyncTerm it) { term_.emplace(std::move(it)); },
            [done = std::move(done)](const auto&) { done(); });
    }
    void step() {
        term_.reset();
        loop_.step();
    }
    void cancel() { loop_.cancel(*object_); }
    void run() {
        term_.reset();
        loop_.run();
    }
    void end() { loop_.end(); }
    /// Destroys the object, and the term of a leader.
    void destroy() {
        term_.reset();
        object_.reset();
    }

private:
    LoopInSteps loop_;
    std::optional<AsyncTerm> term_{};
    std::optional<Type> object_{};
};

}  // namespace redlock::test
