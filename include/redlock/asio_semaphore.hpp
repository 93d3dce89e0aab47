// Semaphores for programs with Asio. At most `limit` clients hold a semaphore at the same time. Each of
// them holds one of its slots. In the example, the limit is 3:
//
//     boost::asio::awaitable<void> export_orders(redlock::RedisNodes& nodes) {
//         auto executor = co_await boost::asio::this_coro::executor;
//         redlock::asio::Semaphore semaphore{executor, nodes, "exports", 3, {.ttl = 30s}};
//         if (auto result = co_await semaphore.async_acquire_for(10s, boost::asio::use_awaitable)) {
//             export_the_orders();
//             (void)co_await semaphore.async_release(boost::asio::use_awaitable);
//         } else {
//             log(result.message());
//         }
//     }
//
// semaphore.hpp documents the promises of a semaphore, and async_semaphore.hpp the times of its operations.
// asio.hpp documents the rules of the operations, and which Asio is used.
#pragma once

#include <redlock/asio.hpp>
#include <redlock/async_semaphore.hpp>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace redlock::asio {
inline namespace REDLOCK_ASIO_NAMESPACE {

/// A semaphore whose operations are asynchronous operations of Asio. It has the queries and operations of
/// Lock (asio.hpp), except resources(). All rules of Lock apply to the semaphore. LockOptions::on_lost may
/// release or destroy it, if it still exists when the posted call comes. `held_by_other` means that no slot
/// was free.
class Semaphore : public detail::Operations<AsyncSemaphore> {
public:
    /// Prepares a semaphore with `limit` slots, from 1 to 1000, see the constructor of redlock::Semaphore.
    /// All that the documentation of the constructor of Lock says is true of this constructor, too.
    Semaphore(const executor_type& executor, Nodes& nodes, std::string_view name, std::size_t limit,
              LockOptions options = {})
        : Operations(executor, nodes, name, limit,
                     detail::posting_on_lost(executor, nodes, std::move(options))) {}

    /// The same, with the executor of a context such as an io_context.
    template <class Context>
    requires std::is_convertible_v<Context&, net::execution_context&> Semaphore(
        Context& context, Nodes& nodes, std::string_view name, std::size_t limit, LockOptions options = {})
        : Semaphore(executor_type{context.get_executor()}, nodes, name, limit, std::move(options)) {}

    /// Returns the slot that is held, from 0 to `limit` − 1. If none is held, returns the slot that was tried
    /// last, or 0 before the first attempt.
    using LeaseView::slot;
};

}  // namespace REDLOCK_ASIO_NAMESPACE
}  // namespace redlock::asio
