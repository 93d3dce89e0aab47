// A lock for programs with an event loop. It does the same as Lock (lock.hpp), but no function blocks. An
// operation that needs the network begins, and when it has ended, the loop calls its *completion*:
//
//     // loop_nodes is an AsyncNodes (async_nodes.hpp): the connections of the loop to the nodes.
//     redlock::AsyncLock lock{loop_nodes, "orders:42", {.ttl = 10s}};
//     lock.acquire([&](redlock::Result result) {
//         if (!result) return log(result.message());
//         charge(order);
//         lock.release([](redlock::Result) {});
//     });
//
// Programs with Asio use redlock/asio.hpp, whose operations a coroutine can co_await.
//
// lock.hpp documents what a lock promises, its states, and what each function does. This file documents the
// differences in a loop.
#pragma once

#include <redlock/async_nodes.hpp>
#include <redlock/clock.hpp>
#include <redlock/export.hpp>
#include <redlock/options.hpp>
#include <redlock/resources.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock {

namespace algorithm {
struct AcquireLimits;
}
namespace detail {
class LeaseState;
class Renewer;
enum class Acquires : bool;  // whether all resources are acquired, or one of them
}  // namespace detail

/// A function that is called once with a value. Converts from every callable that takes the value, also from
/// one that can only be moved, such as a lambda that owns a std::unique_ptr. An object is empty if it was
/// made without a function, was moved from, or was called. An empty object must neither be called nor passed
/// to an operation.
template <class Value>
class CompletionWith {
public:
    CompletionWith() = default;
    template <class Function>
    requires(!std::same_as<std::remove_cvref_t<Function>, CompletionWith> &&
             std::invocable<std::decay_t<Function>&&, Value>)
        // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload): for a lambda
        CompletionWith(Function&& function)
        : callable_(std::make_unique<Stored<std::decay_t<Function>>>(std::forward<Function>(function))) {}

    /// Returns false if the object is empty.
    explicit operator bool() const noexcept { return callable_ != nullptr; }

    /// Calls the function, and then destroys it.
    void operator()(Value value) { std::exchange(callable_, nullptr)->call(std::move(value)); }

private:
    struct Callable {
        Callable() = default;
        Callable(const Callable&) = delete;
        Callable& operator=(const Callable&) = delete;
        virtual ~Callable() = default;
        virtual void call(Value&& value) = 0;
    };
    template <class Function>
    struct Stored final : Callable {
        explicit Stored(Function&& source) : function(std::move(source)) {}
        explicit Stored(const Function& source) : function(source) {}
        void call(Value&& value) override { std::move(function)(std::move(value)); }
        Function function;
    };

    std::unique_ptr<Callable> callable_{};
};

/// The function that the loop calls with the result when an operation has ended.
using Completion = CompletionWith<Result>;

/// Returns the value of LockOptions::watchdog with which the loop itself is the watchdog of an AsyncLock. The
/// loop then does what a Watchdog does in a thread (watchdog.hpp): it extends the lock while it is held,
/// reports its loss, and calls LockOptions::on_lost. It swallows the exceptions of on_lost.
REDLOCK_EXPORT detail::Renewer* loop_watchdog() noexcept;

/// A lock in an event loop.
///
/// Completions: the loop calls the completion of an operation once, and never inside the function that began
/// the operation. The completion may call any function of any lock, and may destroy the lock. An exception of
/// the completion is thrown by EventLoop::ready() or wake(), which has called it. The loop does not call the
/// completion in two cases:
///
/// - The function that began the operation has thrown: std::invalid_argument for incorrect use, or
///   std::bad_alloc.
/// - AsyncNodes::shut_down() has ended the operation.
///
/// Only one operation of a lock can be under way. A second one ends with std::errc::operation_in_progress,
/// and does not disturb the first.
///
/// Memory: if it runs out during an acquisition, some nodes may have set the key already. The loop sends them
/// a release, and the acquisition then ends with std::errc::not_enough_memory. If there is no memory for this
/// release either, the loop tries again, until the keys have expired.
///
/// Threads: all functions must be called in the loop (EventLoop says what that is). Only the queries, from
/// valid() to fencing_token(), may be called by any thread, but not during the assignment or destruction of
/// the lock.
///
/// Times: if more than 256 operations of a loop use the network at the same time, some have to wait for
/// others. This wait is added to the times below.
class REDLOCK_EXPORT AsyncLock {
public:
    /// Prepares a lock, as the constructor of Lock does. LockOptions::watchdog must be null or
    /// loop_watchdog(). Throws std::invalid_argument if the options cannot work.
    AsyncLock(AsyncNodes& nodes, ResourceList resources, LockOptions options = {});

    /// Releases the lock unless it is free, without blocking: the loop sends the release. An operation that
    /// is under way ends with `cancelled`, even if it was successful: an acquisition ends early, an extension
    /// or a release when the nodes have answered. Never throws.
    ~AsyncLock();

    /// The lock that was moved from is free. Its acquisitions end with std::errc::invalid_argument, and its
    /// extensions and releases with `not_held`.
    AsyncLock(AsyncLock&& other) noexcept;
    /// Releases the lock of this object as the destructor does, then takes over the other lock. An operation
    /// of the other lock goes on.
    AsyncLock& operator=(AsyncLock&& other) noexcept;

    // ---- Queries, see Lock.

    bool valid() const noexcept;
    std::chrono::nanoseconds remaining() const noexcept;
    /// Returns a token as Lock::lost() does. AsyncNodes::shut_down() also requests this stop. The loop calls
    /// the callbacks on the token (std::stop_callback).
    std::stop_token lost() const;
    const std::string& resource() const noexcept;
    Resources resources() const noexcept;
    std::string_view owner() const noexcept;
    std::uint64_t fencing_token() const noexcept;

    // ---- Operations, see Lock for their results. Each function begins an operation and returns at once.

    /// Makes up to LockOptions::retry.attempts attempts, with pauses. The operation takes at most the time
    /// for which Lock::acquire() blocks.
    void acquire(Completion done);
    /// Makes one attempt. The operation takes at most the time for which Lock::try_acquire() blocks.
    void try_acquire(Completion done);
    /// Makes attempts until `span` is over. The operation takes at most `span` plus one node_timeout.
    template <class Rep, class Period>
    void acquire_for(std::chrono::duration<Rep, Period> span, Completion done) {
        acquire_by(deadline_after(now(), span), std::move(done));
    }

    /// Extends the lock as Lock::extend() does. The operation takes at most one node_timeout.
    void extend(Completion done);
    /// Extends with another ttl. Throws std::invalid_argument for a ttl that cannot work.
    void extend(std::chrono::milliseconds ttl, Completion done);
    /// Throws the exception that extend() would throw for this ttl.
    void check_ttl(std::chrono::milliseconds ttl) const;

    /// Releases the lock. valid() is false as soon as this function has returned. The operation takes at most
    /// one node_timeout, or two if the watchdog is extending the lock.
    void release(Completion done);

    /// Cancels an acquisition, which then ends within two node_timeouts. It ends with `cancelled`, unless the
    /// attempt that is under way still has another outcome, such as success. After `cancelled`, no node that
    /// can be reached keeps a key. Does nothing if no acquisition is under way. Extensions and releases
    /// cannot be cancelled, because they end soon.
    void cancel() noexcept;

private:
    friend class AsyncLeader;
    friend class AsyncSemaphore;
    class Impl;

    AsyncLock(AsyncNodes& nodes, std::vector<std::string> names, LockOptions options,
              detail::Acquires acquires);

    std::shared_ptr<detail::LeaseState> state() const noexcept;  // what is held; null if moved from
    Clock::time_point now() const noexcept;
    void acquire_by(Clock::time_point deadline, Completion done);
    void acquire(const algorithm::AcquireLimits& limits, Completion done);

    std::shared_ptr<loop::Front> front_;
    std::shared_ptr<Impl> impl_;  // null if moved from
};

}  // namespace redlock
