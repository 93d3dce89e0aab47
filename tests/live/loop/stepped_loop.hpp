// A loop that a test runs step by step: a poll() loop, or an execution context of Asio. A file that includes
// this header is compiled for each.
#pragma once

#if defined(REDLOCK_ASIO_BOOST) || defined(REDLOCK_ASIO_STANDALONE)
#include "asio_world.hpp"

#include <redlock/asio_leader.hpp>
#include <redlock/asio_semaphore.hpp>
#else
#include "poll_loop.hpp"
#include "support/cluster_test.hpp"

#include <redlock/async_leader.hpp>
#include <redlock/async_semaphore.hpp>
#endif

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace redlock::test {

using namespace std::chrono_literals;

#if defined(REDLOCK_ASIO_BOOST) || defined(REDLOCK_ASIO_STANDALONE)

using LockInSteps = asio::Lock;
using SemaphoreInSteps = asio::Semaphore;
using LeaderInSteps = asio::Leader;

/// Makes an object in the loop, and begins its operation.
template <class Type>
class SteppedLoop {
public:
    template <class... Arguments>
    explicit SteppedLoop(RedisNodes& nodes, Arguments... arguments)
        : object_{std::in_place, *context_, nodes, std::move(arguments)...} {}

    void begin(std::function<void()> done) {
        const auto bound = [&](auto handler) {
            return net::bind_cancellation_slot(signal_.slot(), std::move(handler));
        };
        if constexpr (std::is_same_v<Type, asio::Leader>)
            object_->async_run([this](AsyncTerm it) { term_.emplace(std::move(it)); },
                               bound([done = std::move(done)](const std::exception_ptr&) { done(); }));
        else
            object_->async_acquire(bound([done = std::move(done)](const Result&) { done(); }));
    }
    void step() {
        term_.reset();
        (void)context_->run_one_for(1ms);
        context_->restart();
    }
    void cancel() { signal_.emit(net::cancellation_type::terminal); }
    void run() {
        term_.reset();
        context_->run();
        context_->restart();
    }
    void end() { context_.reset(); }
    /// Destroys the object, and the term of a leader.
    void destroy() {
        term_.reset();
        object_.reset();
    }

private:
    std::unique_ptr<net::io_context> context_ = std::make_unique<net::io_context>();
    net::cancellation_signal signal_{};
    std::optional<AsyncTerm> term_{};
    std::optional<Type> object_;
};

#else

using LockInSteps = AsyncLock;
using SemaphoreInSteps = AsyncSemaphore;
using LeaderInSteps = AsyncLeader;

/// Makes an object in the loop, and begins its operation.
template <class Type>
class SteppedLoop {
public:
    template <class... Arguments>
    explicit SteppedLoop(RedisNodes& nodes, Arguments... arguments)
        : of_loop_{std::in_place, nodes, loop_}, object_{std::in_place, *of_loop_, std::move(arguments)...} {}

    void begin(std::function<void()> done) {
        if constexpr (std::is_same_v<Type, AsyncLeader>)
            object_->run([this](AsyncTerm it) { term_.emplace(std::move(it)); },
                         [done = std::move(done)](const std::exception_ptr&) { done(); });
        else
            object_->acquire([done = std::move(done)](const Result&) { done(); });
    }
    void step() {
        term_.reset();
        (void)loop_.run_once();
    }
    void cancel() { object_->cancel(); }
    void run() {
        term_.reset();
        loop_.run();
    }
    void end() {
        of_loop_.reset();
        EXPECT_FALSE(loop_.run_once());
    }

    /// Destroys the object, and the term of a leader.
    void destroy() {
        term_.reset();
        object_.reset();
    }

private:
    PollLoop loop_{};
    std::optional<AsyncNodes> of_loop_;
    std::optional<AsyncTerm> term_{};
    std::optional<Type> object_;
};

#endif

}  // namespace redlock::test
