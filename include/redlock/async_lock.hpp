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
class Renewer;               // the base class of Watchdog (watchdog.hpp)
enum class Acquires : bool;  // a lock acquires all of its resources, and a semaphore acquires one slot
}  // namespace detail

/// A function that is called once with a value. A CompletionWith can be made from every callable that takes
/// the value, even from one that can only be moved, such as a lambda that owns a std::unique_ptr. A
/// CompletionWith is empty if it was made without a function, was moved from, or was called. An empty one
/// must neither be called nor passed to an operation.
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

/// Returns a value for the field LockOptions::watchdog of an AsyncLock. The value is the same for all locks,
/// and nobody deletes it. With it, the loop extends the lock while the lock is held, requests a stop on
/// lost() when the lock is lost, and calls LockOptions::on_lost. As with a Watchdog (watchdog.hpp),
/// exceptions of on_lost are swallowed.
REDLOCK_EXPORT detail::Renewer* loop_watchdog() noexcept;

/// A lock in an event loop.
///
/// Threads: all functions must be called in the loop (EventLoop says what that is), except the queries. Any
/// thread may call a query, unless another thread is moving, assigning or destroying the lock. The text that
/// owner() returns must not be read while the lock is being acquired again.
///
/// Operations: only one operation of a lock can be under way. A second one does nothing, and ends with
/// std::errc::operation_in_progress. An operation makes one round at a time, and a loop at most 256 (see
/// AsyncNodes). If more than 256 operations are under way, the times below can be longer, because a round
/// may have to wait.
///
/// Completions: the loop calls the completion of an operation once, and never inside the function that began
/// the operation. The completion may call any function of any lock, and may destroy the lock. If the
/// completion throws, EventLoop::ready() or wake() throws its exception. The completion is destroyed without
/// a call in two cases:
///
/// - The function that should begin the operation throws std::bad_alloc, or std::invalid_argument if it is
///   used incorrectly.
/// - AsyncNodes::shut_down() is called before the operation or while it is under way.
///
/// Memory: if memory runs out during an acquisition, some nodes may have set the key already. The loop sends
/// them a release, and the acquisition then ends with std::errc::not_enough_memory. If there is no memory for
/// this release either, the loop tries again, until the keys have expired.
class REDLOCK_EXPORT AsyncLock {
public:
    /// Prepares a lock, as the constructor of Lock does. LockOptions::watchdog must be null or
    /// loop_watchdog(). Throws std::invalid_argument if the options cannot work.
    AsyncLock(AsyncNodes& nodes, ResourceList resources, LockOptions options = {});

    /// Releases the lock unless it is free. Does not block, because the loop sends the release. Never throws.
    ///
    /// If an operation is under way, the lock is released after the end of the operation. The result of the
    /// operation is `cancelled`, even if the operation was successful. An acquisition ends early, as by
    /// cancel(). An extension or a release ends when the nodes have answered.
    ~AsyncLock();

    /// Takes over the other lock. An operation that is under way goes on, and belongs to this object then.
    /// Afterwards `other` has no lock: its next acquisition ends with std::errc::invalid_argument, its
    /// next extension or release with `not_held`.
    AsyncLock(AsyncLock&& other) noexcept;
    /// Releases the lock of this object as the destructor does, then takes over the other lock.
    AsyncLock& operator=(AsyncLock&& other) noexcept;

    // ---- Queries, see Lock. Any thread may call them.

    bool valid() const noexcept;
    std::chrono::nanoseconds remaining() const noexcept;
    /// Returns a token as Lock::lost() does. With loop_watchdog(), a stop is requested on the token when the
    /// lock is lost, and when AsyncNodes::shut_down() ends the extensions. In both cases, each
    /// std::stop_callback on the token is called in the loop.
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

    /// Cancels an acquisition. The acquisition then ends within two node_timeouts. The attempt that is under
    /// way can still succeed, or fail for another reason. Otherwise the result is `cancelled`, and no node
    /// that can be reached keeps a key.
    ///
    /// Does nothing if no acquisition is under way. An extension or a release goes on, because it ends soon.
    void cancel() noexcept;

private:
    friend class AsyncLeader;
    friend class AsyncSemaphore;
    class Impl;

    AsyncLock(AsyncNodes& nodes, std::vector<std::string> names, LockOptions options,
              detail::Acquires acquires);

    std::shared_ptr<detail::LeaseState> state() const noexcept;  // the lease; null if moved from
    Clock::time_point now() const noexcept;
    void acquire_by(Clock::time_point deadline, Completion done);
    void acquire(const algorithm::AcquireLimits& limits, Completion done);

    std::shared_ptr<loop::Front> front_;  // the state of the AsyncNodes, which its locks share
    std::shared_ptr<Impl> impl_;          // null if moved from
};

}  // namespace redlock
