// Locks for programs with Asio. No function of a lock waits for a server, with one exception: see the
// constructor of redlock::asio::Lock. An operation takes a completion token of Asio. If the token is
// use_awaitable, a coroutine awaits the operation. If the token is a callback, the callback is called when
// the operation has ended.
//
//     boost::asio::awaitable<void> ship(redlock::RedisNodes& nodes, Order order) {
//         auto executor = co_await boost::asio::this_coro::executor;
//         redlock::asio::Lock lock{executor, nodes, "orders:42", {.ttl = 10s}};
//         if (auto result = co_await lock.async_acquire_for(2s, boost::asio::use_awaitable)) {
//             charge(order);
//             (void)co_await lock.async_release(boost::asio::use_awaitable);
//         } else {
//             log(result.message());
//         }
//     }
//
// lock.hpp documents what a lock promises, and async_lock.hpp documents what is different in an event loop.
// The class redlock::asio::Lock, with its rules for lifetimes and threads, is at the end of this file.
//
// The header needs Boost.Asio of Boost 1.81 or later, or standalone Asio 1.22 or later. If both are
// installed, it uses Boost.Asio, unless REDLOCK_ASIO_STANDALONE is defined before the header is included. One
// program can have source files with both. The CMake target is redlock::asio. It does not look for Asio, so
// the CMake files of the program must do that.
#pragma once

#include <redlock/async_lock.hpp>
#include <redlock/detail/asio_library.hpp>
#include <redlock/detail/asio_operation.hpp>
#include <redlock/error.hpp>
#include <redlock/lease_view.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/resources.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <system_error>
#include <type_traits>
#include <utility>

namespace redlock::asio {
inline namespace REDLOCK_ASIO_NAMESPACE {
namespace detail {

/// The queries and operations that a Lock and a Semaphore have in common. `Async` is AsyncLock or
/// AsyncSemaphore. The queries are those of the Async. The operations use a function of the base class Handle
/// (detail/asio_operation.hpp): `initiate(token, error, begin)` makes an asynchronous operation of Asio from
/// a call of `begin`. If the lock was moved from, the operation ends with `error`.
template <class Async>
class Operations : public Handle<Async>, protected LeaseView {
public:
    using executor_type = net::any_io_executor;

    // ---- Queries, see redlock::Lock.

    using LeaseView::valid, LeaseView::remaining, LeaseView::lost, LeaseView::resource, LeaseView::owner,
        LeaseView::fencing_token;

    // ---- Operations, see AsyncLock.

    /// Makes up to LockOptions::retry.attempts attempts, with pauses.
    template <class Token = net::default_completion_token_t<executor_type>>
    auto async_acquire(Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), cannot_acquire(),
            [](Async& lock, Completion done) { lock.acquire(std::move(done)); });
    }

    /// Makes one attempt.
    template <class Token = net::default_completion_token_t<executor_type>>
    auto async_try_acquire(Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), cannot_acquire(),
            [](Async& lock, Completion done) { lock.try_acquire(std::move(done)); });
    }

    /// Makes attempts until `span` is over.
    template <class Rep, class Period, class Token = net::default_completion_token_t<executor_type>>
    auto async_acquire_for(std::chrono::duration<Rep, Period> span, Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), cannot_acquire(),
            [span](Async& lock, Completion done) { lock.acquire_for(span, std::move(done)); });
    }

    /// Extends the lock as redlock::Lock::extend() does.
    template <class Token = net::default_completion_token_t<executor_type>>
    requires(!std::is_convertible_v<Token, std::chrono::milliseconds>) auto async_extend(
        Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), Errc::not_held,
            [](Async& lock, Completion done) { lock.extend(std::move(done)); });
    }

    /// Extends with another ttl. Throws std::invalid_argument for a ttl that cannot work.
    template <class Token = net::default_completion_token_t<executor_type>>
    auto async_extend(std::chrono::milliseconds ttl, Token&& token = Token()) {
        // When Asio begins the operation, a coroutine is suspended, and cannot catch an exception. Therefore
        // the ttl is checked before. check_ttl() reads only constants, so any thread may call it.
        check_ttl(ttl);
        return this->template initiate<Result>(
            std::forward<Token>(token), Errc::not_held,
            [ttl](Async& lock, Completion done) { lock.extend(ttl, std::move(done)); });
    }

    /// Releases the lock. Unless another operation is under way, valid() is false as soon as this operation
    /// has begun. With use_awaitable, co_await begins it.
    template <class Token = net::default_completion_token_t<executor_type>>
    auto async_release(Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), Errc::not_held,
            [](Async& lock, Completion done) { lock.release(std::move(done)); });
    }

protected:
    Operations(const executor_type& executor, Nodes& nodes, auto&&... arguments)
        : Handle<Async>(executor, nodes, std::forward<decltype(arguments)>(arguments)...),
          LeaseView(Handle<Async>::state_->async->view()) {}

private:
    static std::error_code cannot_acquire() noexcept {
        return std::make_error_code(std::errc::invalid_argument);
    }
};

}  // namespace detail

/// A lock whose operations are asynchronous operations of Asio. The *context* of a lock is the execution
/// context of its executor, such as an io_context. It takes the place of the event loop.
///
/// The operations are async_acquire(token), async_try_acquire(token), async_acquire_for(span, token),
/// async_extend(token), async_extend(ttl, token) and async_release(token). The queries are those of
/// redlock::Lock, and get_executor(). Most of these functions are members of the base classes.
///
/// Operations: the completion signature is `void(redlock::Result)`. With use_awaitable, co_await returns the
/// Result, and failures do not throw. With a callback, async_acquire() and the others begin their operation
/// at once. With use_awaitable, the operation begins at co_await. Only one operation of a lock can be under
/// way. A second one does nothing, and ends with std::errc::operation_in_progress. Cancellation, of any type,
/// has the effect of AsyncLock::cancel(). The run() of an io_context does not return by itself while an
/// operation is under way, while the context extends a lock with loop_watchdog(), or while it releases a lock
/// that was destroyed. After that it returns at once, unless a server has not answered a release:
///
///     the release is                               | run() goes on until it is answered, but at most for
///     ---------------------------------------------+------------------------------------------------------
///     sent                                         | one NodesOptions::node_timeout
///     not sent, because the socket is full or is   | the longest ttl of the locks with this context and
///     still connecting, or a name is not resolved  | this Nodes object; by then their keys have expired
///
/// Handlers: the handler of an operation is called once. It is posted to its associated executor, or to the
/// executor of the lock if the handler has none. If there is no memory to post the handler, the library tries
/// again while the context runs. The handler is not called in three cases:
///
/// - async_extend(ttl, token) throws std::invalid_argument. It throws before the operation begins, so a
///   coroutine can catch the exception.
/// - The function that begins the operation throws std::bad_alloc. With use_awaitable, the exception leaves
///   the run() of the context, because a suspended coroutine cannot catch it. The coroutine does not go on
///   then. Asio posts a function that destroys the coroutine, and so its local locks. If there is no memory
///   to post this function, Asio calls std::terminate().
/// - The context is destroyed before the call.
///
/// Lifetime:
///
/// - A lock must be destroyed before its Nodes object. If this is a RedisNodes, operations and releases of
///   destroyed locks that are still under way go on without it. But no thread may destroy the RedisNodes
///   while another thread destroys the context. A Nodes object of another class must also outlive the
///   context.
/// - The destructor and the assignment of a lock do what those of AsyncLock do. The release is sent while a
///   thread runs the context, or by the destructor of the context. If the context was destroyed before, the
///   destructor or the assignment of the lock writes the release itself, and does not block.
/// - The destructor of the context has the effect of AsyncNodes::shut_down(), which documents what becomes of
///   operations, locks and releases. For each Nodes object, this blocks for at most a millisecond. For each
///   RedisNodes that was destroyed before, with releases that are not sent yet, this blocks for at most one
///   node_timeout.
/// - A lock may outlive the context if the destructor of its executor does not use the context. This is true
///   of the executor that get_executor() of an io_context or a thread_pool returns, even in an
///   any_io_executor. It is not true of a strand. After the destruction of the context, the program may call
///   only the queries, the destructor and the assignment of the lock.
/// - After fork() the child may only destroy the context and the locks. It can make locks with the same Nodes
///   object in a context of its own. In two cases it must keep the context for ever, and may destroy only the
///   locks: if the child has closed the inherited descriptors, as daemons do, because Asio closes its
///   descriptors by their numbers, which may belong to other files; and if several threads have used the
///   context, because Asio could then wait for the threads of the parent. After notify_fork(), the child may
///   use the context for other work.
///
/// Threads, in place of the rules for a loop:
///
/// - Any thread may call the queries, as those of AsyncLock. All other functions of one Lock must be called
///   by one thread or strand at a time. This includes emit() of the signal that cancels its operation.
///   Different locks may be used by different threads, even if several threads run the context.
/// - The threads that run the context do the work of the library. A thread locks a recursive mutex for this
///   work. All locks with the same context and the same Nodes object share one mutex. Their functions, except
///   the queries, lock it for a short time, too.
/// - A std::stop_callback on lost() does not run on the executor of the lock, but in a thread that has locked
///   the mutex. That thread must not wait for another mutex or for another thread. Therefore the callback may
///   do only the following with locks:
///   - call the queries of any lock
///   - construct a lock that shares this mutex, which means with the same context and the same Nodes object
///   - begin an operation of a lock that shares this mutex; another thread may call a function of that lock
///     at the same time, although otherwise only one thread at a time may do so
///   - move or destroy a lock that shares this mutex, if no other thread uses it
class Lock : public detail::Operations<AsyncLock> {
public:
    /// Prepares a lock, see the constructor of redlock::Lock. The constructor also does two things for the
    /// context:
    ///
    /// - For the first lock with a given context and a given Nodes object, it opens a descriptor for a timer.
    ///   It throws std::system_error if this fails.
    /// - If the program has destroyed Nodes objects, each constructor of a lock closes the connections that
    ///   the context still has for them. For each of these objects with releases that are not sent yet, this
    ///   blocks for at most one node_timeout.
    ///
    /// LockOptions::watchdog must be null or redlock::loop_watchdog().
    ///
    /// Calls of LockOptions::on_lost are posted to the executor. Therefore three things are different from a
    /// redlock::Lock and an AsyncLock:
    ///
    /// - If on_lost throws, the run() of the context throws its exception.
    /// - A posted call is made even if the lock is released, destroyed or acquired again meanwhile.
    /// - If the lock was acquired again, an async_release() in on_lost releases the new acquisition.
    ///
    /// A call needs memory twice: for its arguments, which the library allocates in advance, and for posting
    /// it. If there was no memory for the arguments in advance, and there is none at the loss either, the
    /// call is left out. If there is no memory to post the call, the library tries again while the context
    /// runs.
    Lock(const executor_type& executor, Nodes& nodes, ResourceList resources, LockOptions options = {})
        : Operations(executor, nodes, std::move(resources),
                     detail::posting_on_lost(executor, nodes, std::move(options))) {}

    /// The same, with the executor of a context such as an io_context.
    template <class Context>
    requires std::is_convertible_v<Context&, net::execution_context&> Lock(Context& context, Nodes& nodes,
                                                                           ResourceList resources,
                                                                           LockOptions options = {})
        : Lock(executor_type{context.get_executor()}, nodes, std::move(resources), std::move(options)) {}

    using LeaseView::resources;
};

}  // namespace REDLOCK_ASIO_NAMESPACE
}  // namespace redlock::asio
