// Leader election for programs with Asio. The work of a leader can be a coroutine:
//
//     boost::asio::awaitable<void> bill(redlock::Term term) {
//         while (!term.lost().stop_requested()) co_await bill_the_next(term.fencing_token());
//     }
//
//     boost::asio::awaitable<void> lead(redlock::RedisNodes& nodes) {
//         auto executor = co_await boost::asio::this_coro::executor;
//         redlock::asio::Leader leader{executor, nodes, "billing:leader", {.ttl = 15s}};
//         co_await leader.async_run(bill, boost::asio::use_awaitable);
//     }
//
// leader.hpp documents the promises of a term, the options, and the states. asio.hpp documents which Asio is
// taken, and the rules for contexts, threads and fork().
#pragma once

#include <redlock/asio.hpp>
#include <redlock/async_leader.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio/co_spawn.hpp>
#if defined(BOOST_ASIO_HAS_CO_AWAIT)
#define REDLOCK_ASIO_HAS_CO_AWAIT
#endif
#else
#include <asio/co_spawn.hpp>
#if defined(ASIO_HAS_CO_AWAIT)
#define REDLOCK_ASIO_HAS_CO_AWAIT
#endif
#endif

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

namespace redlock::asio {
inline namespace REDLOCK_ASIO_NAMESPACE {

namespace detail {

/// Returns a term whose end ends this one. Meanwhile the mutex is locked that asio.hpp describes, which is a
/// member of Loop (detail/asio_loop.hpp). In a child of fork() the mutex may be locked for ever. Therefore
/// the term is leaked there, and never ends.
inline AsyncTerm locking(std::shared_ptr<Loop> loop, AsyncTerm term) {
    const Term copy = term;
    return {copy, [loop = std::move(loop), term = std::move(term)](std::exception_ptr failure) mutable {
                if (loop->belongs_to_parent()) return (void)new auto(std::move(term));
                const std::lock_guard guard{loop->mutex()};
                term.end(std::move(failure));
            }};
}

/// Begins the work of a term, see Leader::async_run(). If `work` makes a coroutine, the term ends when the
/// coroutine has returned or thrown. `work` lives until then, because the frame of the coroutine can refer to
/// `work`.
template <class Work>
void begin_work([[maybe_unused]] const net::any_io_executor& executor, const std::shared_ptr<Work>& work,
                AsyncTerm term) {
    if constexpr (std::is_void_v<std::invoke_result_t<Work&, AsyncTerm>>) {
        (*work)(std::move(term));
    } else {
#if defined(REDLOCK_ASIO_HAS_CO_AWAIT)
        auto coroutine = (*work)(static_cast<const Term&>(term));
        net::co_spawn(executor, std::move(coroutine),
                      [work, ending = std::move(term)](std::exception_ptr failure) mutable {
                          ending.end(std::move(failure));
                      });
#else
        static_assert(!sizeof(Work*), "this Asio has no coroutines with this compiler");
#endif
    }
}

/// Returns the options with an on_error and an on_failure that the executor calls. The AsyncLeader must not
/// call the functions of the program itself, because the calling thread has locked the mutex of the Loop. The
/// functions may wait for another thread, which may wait for the mutex.
inline LeaderOptions posting_callbacks(const net::any_io_executor& executor, LeaderOptions options) {
    if (options.on_error)
        options.on_error = [executor, on_error = std::move(options.on_error)](const std::exception_ptr& it) {
            net::post(executor, [on_error, it] { on_error(it); });
        };
    if (options.on_failure)
        options.on_failure = [executor, on_failure = std::move(options.on_failure)](const Result& it) {
            net::post(executor, [on_failure, it] { on_failure(it); });
        };
    return options;
}

}  // namespace detail

/// A candidate for the leadership. All rules of Lock (asio.hpp) apply to a Leader, except that its completion
/// signature is another one. async_run() is its only operation. The library posts the calls of the functions
/// of the program to the executor of the Leader: `work`, LeaderOptions::on_error and
/// LeaderOptions::on_failure. The context extends the lock. LeaderOptions::watchdog must be null or
/// loop_watchdog(), which have the same effect.
///
/// The destructor cancels async_run(), and does not block. async_run() then goes on without the Leader, until
/// it ends as after a cancellation. The program may destroy a RedisNodes after the Leader, even before
/// async_run() has ended. While a thread destroys the RedisNodes, no other thread may destroy the context. If
/// the context is already destroyed, no other thread may end or destroy an AsyncTerm while a thread destroys
/// the RedisNodes. The destructor of the context does what AsyncNodes::shut_down() does to an AsyncLeader.
class Leader : detail::Handle<AsyncLeader> {
public:
    using Handle::executor_type;
    using Handle::get_executor;

    /// Prepares a candidate, see the constructor of redlock::Leader. The constructor of Lock documents two
    /// things that this constructor does for the context, too.
    Leader(const executor_type& executor, Nodes& nodes, std::string resource, LeaderOptions options = {})
        : Handle(executor, nodes, std::move(resource),
                 detail::posting_callbacks(executor, std::move(options))) {}

    /// The same, with the executor of a context such as an io_context.
    template <class Context>
    requires std::is_convertible_v<Context&, net::execution_context&> Leader(Context& context, Nodes& nodes,
                                                                             std::string resource,
                                                                             LeaderOptions options = {})
        : Leader(executor_type{context.get_executor()}, nodes, std::move(resource), std::move(options)) {}

    Leader(const Leader&) = delete;
    Leader& operator=(const Leader&) = delete;

    /// Runs terms, with pauses between them. The completion signature is `void(std::exception_ptr)`. The
    /// first row that applies says which exception that is:
    ///
    ///     the operation ends because                    | the exception, which co_await throws
    ///     ----------------------------------------------+-------------------------------------------
    ///     another async_run() is under way              | a std::system_error with the code
    ///                                                   | std::errc::operation_in_progress
    ///     the work has failed, and there is no on_error | the exception of the work
    ///     there is no memory to post a call of on_error | std::bad_alloc
    ///     there is no memory to post a call of          | std::bad_alloc
    ///     on_failure, and there is no on_error          |
    ///     it was cancelled                              | none
    ///
    /// If there is an on_error, and no memory to post a call of on_failure, on_error gets a std::bad_alloc.
    /// The operation then goes on.
    ///
    /// Cancellation, of any type, has the effect of AsyncLeader::cancel(). An exception of on_error or
    /// on_failure does not end the operation. Instead, the run() of the context throws this exception.
    ///
    /// `work` is called for each term. If there is no memory to post this call, the work has failed with
    /// std::bad_alloc. `work` is one of these functions:
    ///
    /// - `awaitable<void> work(Term)` makes a coroutine, which the executor of the Leader runs. The term ends
    ///   when the coroutine returns or throws. If the coroutine throws, the work has failed.
    /// - `void work(AsyncTerm)` begins the work. Any thread may end the term later, by AsyncTerm::end() or by
    ///   destroying the AsyncTerm, even after the context was destroyed. If end() gets an exception, the work
    ///   has failed.
    ///
    /// If the lock is lost or the operation is cancelled, a stop is requested on Term::lost(). Neither the
    /// loss nor the cancellation cancels an operation that the coroutine awaits. The work must look at lost()
    /// itself, or have a std::stop_callback on it. Lock (asio.hpp) says what such a callback may do.
    ///
    /// If the call of `work` itself throws, and not its coroutine, the run() of the context throws this
    /// exception, because the library has only posted the call. This does not count as failed work: on_error
    /// is not called, and the operation goes on. (The work of an AsyncLeader has failed in this case.) The
    /// term ends at once, unless a `void work(AsyncTerm)` has moved its AsyncTerm to another place.
    template <class Work, class Token = net::default_completion_token_t<executor_type>>
    auto async_run(Work work, Token&& token = Token()) {
        auto begin_term = [executor = executor_, loop = state_->loop,
                           shared = std::make_shared<Work>(std::move(work))](AsyncTerm term) {
            net::post(executor, [executor, shared, it = detail::locking(loop, std::move(term))]() mutable {
                detail::begin_work(executor, shared, std::move(it));
            });
        };
        return initiate<std::exception_ptr>(
            std::forward<Token>(token), /*if_moved_from=*/{},  // a Leader cannot be moved
            [begin = std::move(begin_term)](AsyncLeader& leader, AsyncLeader::Done done) {
                leader.run(begin, std::move(done));
            });
    }
};

}  // namespace REDLOCK_ASIO_NAMESPACE
}  // namespace redlock::asio
