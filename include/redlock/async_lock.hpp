// A lock for programs with an event loop. It does the same as Lock (lock.hpp), but no function blocks. A
// function such as acquire() begins an *operation*, and returns. When the operation has ended, the loop calls
// its *completion*, which is a function of the program:
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
#include <redlock/detail/not_copied.hpp>
#include <redlock/export.hpp>
#include <redlock/lease_view.hpp>
#include <redlock/options.hpp>
#include <redlock/resources.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock {

namespace detail {
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
    struct Callable : detail::NotCopied {
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

/// Returns the value for the field LockOptions::watchdog of an AsyncLock. The value is the same for all
/// locks, and must not be deleted. With it, the loop does for the lock what a Watchdog (watchdog.hpp) does in
/// its threads: it extends the lock while the lock is held, and reports a loss. LockOptions::on_lost is
/// called inside EventLoop::ready() or wake(), and may call any function of the lock or destroy it. Its
/// exceptions are swallowed. It is not called any more once the lock is released or destroyed.
///
/// A program that blocks its loop also blocks the extensions and the reports. If the ttl passes meanwhile,
/// the lock is lost, and this is reported only when the loop runs again. But valid() is false as soon as the
/// validity is over.
REDLOCK_EXPORT detail::Renewer* loop_watchdog() noexcept;

/// A lock in an event loop. If this file says that the loop does something, such as sending a release, the
/// library does it inside EventLoop::ready() or wake().
///
/// Threads: all functions except the queries and check_ttl() must be called in the loop (EventLoop says what
/// that is). Any thread may call a query, unless another thread is moving, assigning or destroying the lock.
/// The text that owner() returns must not be read while the lock is being acquired again.
///
/// Operations: only one operation of a lock can be under way. A second one does nothing, and ends with
/// std::errc::operation_in_progress. An operation is under way until its completion is called, so the
/// completion can begin the next one. The times below hold while no round of the operation has to wait for
/// those of others (see AsyncNodes).
///
/// Completions: the loop calls the completion of an operation once, inside EventLoop::ready() or wake(), and
/// never inside the function that began the operation. The completion may call any function of any lock, and
/// may destroy the lock. If the completion throws, the exception leaves ready() or wake(). The completion is
/// destroyed without a call in two cases:
///
/// - The function that should begin the operation throws std::bad_alloc, or std::invalid_argument for a ttl
///   that cannot work.
/// - AsyncNodes::shut_down() is called before the operation or while it is under way.
///
/// Memory: if memory runs out during an operation, the operation ends with std::errc::not_enough_memory. In
/// an acquisition, some nodes may have set the key already. The loop sends them a release before the
/// operation ends. If there is no memory for this release either, the loop tries again, until the keys have
/// expired at the latest. So such an operation can take one ttl longer than the times below.
class REDLOCK_EXPORT AsyncLock : public LeaseView {
public:
    /// Prepares a lock, as the constructor of Lock does. The lock may outlive the AsyncNodes (see there).
    /// LockOptions::watchdog must be null or loop_watchdog(). Throws std::invalid_argument if the resources
    /// or an option cannot work.
    AsyncLock(AsyncNodes& nodes, ResourceList resources, LockOptions options = {});

    /// Releases the lock unless it is free. Does not block, because the loop sends the release. Never throws.
    /// If the program does not run the loop any more, the release is sent by AsyncNodes::shut_down(), or by
    /// this destructor if shut_down() was called before.
    ///
    /// If an operation is under way, the lock is released after the end of the operation. The completion then
    /// gets the result `cancelled`, even if the operation was successful. An acquisition ends early, as by
    /// cancel(). An extension or a release ends within one node_timeout.
    ~AsyncLock();

    /// Takes over the other lock. An operation that is under way goes on, and belongs to this object then.
    /// Afterwards `other` has no lock until one is assigned to it. Its queries return empty values, its
    /// acquisitions end with std::errc::invalid_argument, and its extensions and releases with `not_held`.
    AsyncLock(AsyncLock&& other) noexcept;
    /// Releases the lock of this object as the destructor does, then takes over the other lock.
    AsyncLock& operator=(AsyncLock&& other) noexcept;

    // ---- Queries, see LeaseView. Any thread may call them.

    /// Returns a token as Lock::lost() does. With loop_watchdog(), a stop is requested on the token when the
    /// lock is lost, and inside AsyncNodes::shut_down(), which ends the extensions. In both cases, each
    /// std::stop_callback on the token is called in the loop. The callback may call any function of any lock,
    /// and may destroy the lock. If it releases or destroys the lock, LockOptions::on_lost is not called.
    using LeaseView::lost;

    /// Returns the base class, which redlock::asio copies.
    const LeaseView& view() const noexcept { return *this; }

    // ---- Operations, see Lock for their results. Each function with a completion begins an operation and
    // returns at once. The extensions of loop_watchdog() are no operations, and no operation waits for them.

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
    /// Throws the exception that extend() would throw for this ttl, and does nothing else. Any thread may
    /// call it.
    using LeaseView::check_ttl;

    /// Releases the lock. Unless another operation is under way, valid() is false as soon as this function
    /// has returned. The operation takes at most one node_timeout.
    void release(Completion done);

    /// Cancels an acquisition. The acquisition then ends within two node_timeouts. With LockOptions::fair, it
    /// can take an eighth of a node_timeout more to leave the queue. The attempt that is under way can still
    /// succeed, or fail for another reason. Otherwise the result is `cancelled`, and no node that can be
    /// reached keeps a key of this acquisition. (If a connection breaks before the SET is answered, a key can
    /// stay on that node for one ttl.)
    ///
    /// Does nothing if no acquisition is under way. An extension or a release goes on, because it ends soon.
    void cancel() noexcept;

private:
    friend class AsyncLeader;
    friend class AsyncSemaphore;
    class Impl;

    AsyncLock(AsyncNodes& nodes, std::vector<std::string> names, LockOptions options,
              detail::Acquires acquires);

    void acquire_by(Clock::time_point deadline, Completion done);
    void acquire_within(const algorithm::AcquireLimits& limits, Completion done);

    std::shared_ptr<loop::Context> context_;  // the state of the AsyncNodes, which its locks share
    std::shared_ptr<Impl> impl_;              // null if moved from
};

}  // namespace redlock
