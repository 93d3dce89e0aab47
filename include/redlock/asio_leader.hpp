// Leader election for programs with Asio. The work of the leader is a coroutine:
//
//     boost::asio::awaitable<void> bill(redlock::Term term) {
//         while (!term.lost().stop_requested()) co_await bill_the_next(term.fencing_token());
//     }
//
//     boost::asio::awaitable<void> lead(redlock::RedisNodes& nodes) {
//         auto executor = co_await boost::asio::this_coro::executor;
//         redlock::asio::Leader leader{executor, nodes, "billing:leader", {.ttl = 15s, .margin = 3s}};
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

/// Locks the mutex of the loop, and ends a term. In a child of fork() the mutex may be locked for ever, so
/// the term is leaked there and never ends.
struct TermEnd {
    void operator()(std::exception_ptr failure) {
        if (loop->belongs_to_parent()) {
            (void)new auto(std::move(term));
            return;
        }
        const std::lock_guard guard{loop->mutex()};
        term.end(std::move(failure));
    }

    std::shared_ptr<Loop> loop;
    AsyncTerm term;
};

/// Begins the work of a term. A function without a result ends the term itself. A coroutine ends it when it
/// returns or throws. The function lives until then, because the frame of the coroutine can refer to it.
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

/// Returns the options with an on_error and an on_failure that the executor calls. The leader must not call
/// them itself, because it holds the mutex of the loop, and they may wait for another thread that needs it.
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

/// A candidate for the leadership whose run() is an asynchronous operation of Asio. The work, on_error and
/// on_failure are called as if by post(), by the executor of the leader. The context extends the terms.
/// LeaderOptions::watchdog must be null or loop_watchdog().
///
/// The destructor cancels async_run(), and does not block. async_run() goes on to its end, which is after the
/// end of the work. When the context is destroyed, no handler is called any more. A stop is then requested on
/// Term::lost(), and the term is not extended.
class Leader : detail::Handle<AsyncLeader> {
public:
    using Handle::executor_type;
    using Handle::get_executor;

    /// Prepares a candidate, see the constructor of redlock::Leader.
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

    /// Runs terms, with pauses between them, until the operation is cancelled, see AsyncLeader::run(). The
    /// completion signature is `void(std::exception_ptr)`, so co_await throws what the run() of
    /// redlock::Leader would throw. If async_run() is under way already, co_await throws a std::system_error
    /// with the code std::errc::operation_in_progress.
    ///
    /// Cancellation, of any type, ends a pause at once, and a campaign within two node_timeouts. During a
    /// term, it requests a stop on Term::lost(), and the operation ends when the work has ended, plus one or
    /// two node_timeouts for the release. It then ends without an exception.
    ///
    /// `work` is called for each term:
    ///
    /// - A function `awaitable<void> work(Term)` begins a coroutine, which the executor of the leader
    ///   runs. The term ends when the coroutine returns or throws.
    /// - A function `void work(AsyncTerm)` ends the term by AsyncTerm::end(), or by destroying the AsyncTerm.
    ///   Any thread of the context may do that. An exception of this function does not reach the leader: the
    ///   run() of the context throws it. The term ends only when its AsyncTerm is destroyed, which usually
    ///   happens at once, because the exception destroys the argument.
    template <class Work, class Token = net::default_completion_token_t<executor_type>>
    auto async_run(Work work, Token&& token = Token()) {
        auto begin_term = [executor = executor_, loop = state_->loop,
                           shared = std::make_shared<Work>(std::move(work))](AsyncTerm term) {
            const Term copy = term;
            AsyncTerm of_work{copy, detail::TermEnd{loop, std::move(term)}};
            net::post(executor, [executor, shared, it = std::move(of_work)]() mutable {
                detail::begin_work(executor, shared, std::move(it));
            });
        };
        return initiate<std::exception_ptr>(
            std::forward<Token>(token), {},
            [begin = std::move(begin_term)](AsyncLeader& leader, AsyncLeader::Done done) {
                leader.run(begin, std::move(done));
            });
    }
};

}  // namespace REDLOCK_ASIO_NAMESPACE
}  // namespace redlock::asio
