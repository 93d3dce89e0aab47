// A distributed lock for programs with an event loop. It does the same as Lock (lock.hpp), by the same
// algorithm, but no function blocks. An operation that needs the network begins, and calls its *completion*
// later from the loop:
//
//     // loop_nodes is an AsyncNodes (async_nodes.hpp): the connections of the loop to the nodes.
//     redlock::AsyncLock lock{loop_nodes, "orders:42", {.ttl = 10s}};
//     lock.acquire([&](redlock::Result result) {
//         if (!result) return log(result.message());
//         charge(order);
//         lock.release([](redlock::Result) {});
//     });
//
// For Asio, redlock/asio.hpp has a class with completion tokens, with which a coroutine can co_await each
// operation.
//
// lock.hpp documents the promises of a valid lock, its states, and each function in each state. This file
// documents the differences in a loop.
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
enum class Acquires : bool;
}  // namespace detail

/// The function that is called with a value when something has ended. Converts from every callable that takes
/// the value. The callable may be movable only, such as a lambda that owns a std::unique_ptr. An empty object
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

    /// Calls the function, and then destroys it. May be called once.
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

/// The function that is called with the result when an operation has ended.
using Completion = CompletionWith<Result>;

/// Returns a value for LockOptions::watchdog, which has no other use. The library owns the object behind it.
/// With this value, the loop of the AsyncLock extends the lock and reports its loss, as Watchdog does in a
/// thread (watchdog.hpp). LockOptions::on_lost is then called in the loop. An exception of on_lost is
/// swallowed, because Watchdog swallows it, too.
REDLOCK_EXPORT detail::Renewer* loop_watchdog() noexcept;

/// A lock in an event loop.
///
/// - Only one operation of a lock can be under way. A second one ends with
///   std::errc::operation_in_progress, and does not disturb the first.
/// - The completion is called once, from the loop, and never inside the function that began the operation. It
///   is not called if AsyncNodes::shut_down() ends the operation. It may call any function of any lock, and
///   may destroy the lock. If it throws, EventLoop::ready() or wake() throws the exception to the loop, so
///   that the program can handle it there.
/// - The functions throw std::invalid_argument for incorrect use, and std::bad_alloc. Then the operation has
///   not begun, and the completion is not called.
/// - The constructor, the operations, cancel(), the assignment and the destructor must be called in the loop.
///   The queries, from valid() to fencing_token(), may be called by any thread, except during the assignment
///   or destruction of the lock. The view that owner() returns is valid until the next acquisition. So
///   another thread may read it only while the loop does not acquire the lock.
/// - At most 256 rounds of a loop are under way at the same time. If an operation has to wait for others
///   because of that, this wait is added to the times that the operations below state.
class REDLOCK_EXPORT AsyncLock {
public:
    /// Prepares a lock, as the constructor of Lock does. Does no I/O. Throws std::invalid_argument if the
    /// options cannot work, or if LockOptions::watchdog is neither null nor loop_watchdog().
    AsyncLock(AsyncNodes& nodes, ResourceList resources, LockOptions options = {});

    /// Releases the lock unless it is free, and does not block: the loop sends the release. If an operation
    /// is under way, the loop first ends it: it cancels an acquisition, and lets an extension or a release go
    /// on to its end. Then it calls the completion, in each case with `cancelled`, and releases the lock. If
    /// there is no memory for the release, the loop tries again. Never throws.
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
    /// Returns a token as Lock::lost() does. Without loop_watchdog() a stop is never requested on it. A
    /// std::stop_callback on the token is called in the loop.
    std::stop_token lost() const;
    const std::string& resource() const noexcept;
    Resources resources() const noexcept;
    std::string_view owner() const noexcept;
    std::uint64_t fencing_token() const noexcept;

    // ---- Operations, see Lock for their results.

    /// Makes up to LockOptions::retry.attempts attempts, with pauses. Ends after at most the time for which
    /// Lock::acquire() blocks.
    void acquire(Completion done);
    /// Makes one attempt.
    void try_acquire(Completion done);
    /// Makes attempts until `span` is over. Ends after at most `span` plus one node_timeout.
    template <class Rep, class Period>
    void acquire_for(std::chrono::duration<Rep, Period> span, Completion done) {
        acquire_by(deadline_after(now(), span), std::move(done));
    }

    /// Resets the remaining time to the full ttl. Ends after at most one node_timeout.
    void extend(Completion done);
    /// Extends with another ttl. Throws std::invalid_argument for a ttl that cannot work.
    void extend(std::chrono::milliseconds ttl, Completion done);
    /// Throws the exception that extend() would throw for this ttl. Use it if extend() is called later, at a
    /// place where its exception could not be caught.
    void check_ttl(std::chrono::milliseconds ttl) const;

    /// Releases the lock. valid() is false as soon as this function has returned. The operation ends after at
    /// most one node_timeout, or two if the watchdog is extending the lock.
    void release(Completion done);

    /// Cancels the operation that is under way, if it is an acquisition: it ends with `cancelled` within two
    /// node_timeouts, and no reachable node keeps a key of it. If it has succeeded already, its result is not
    /// changed. An extension or a release is not cancelled, because it ends soon.
    void cancel() noexcept;

private:
    friend class AsyncLeader;
    friend class AsyncSemaphore;
    class Impl;

    AsyncLock(AsyncNodes& nodes, std::vector<std::string> names, LockOptions options,
              detail::Acquires acquires);

    std::shared_ptr<detail::LeaseState> state() const noexcept;  // null if moved from
    Clock::time_point now() const noexcept;
    void acquire_by(Clock::time_point deadline, Completion done);
    void acquire(const algorithm::AcquireLimits& limits, Completion done);

    std::shared_ptr<loop::Front> front_;
    std::shared_ptr<Impl> impl_;  // null if moved from
};

}  // namespace redlock
