// How operations of an AsyncLock, AsyncSemaphore or AsyncLeader become asynchronous operations of Asio.
#pragma once

#include <redlock/detail/asio_library.hpp>
#include <redlock/detail/asio_loop.hpp>
#include <redlock/detail/memory.hpp>
#include <redlock/error.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace redlock::asio {
inline namespace REDLOCK_ASIO_NAMESPACE {
namespace detail {

/// Whether an executor is kept at work until its handler is called.
enum class Work : bool { no, yes };

/// The handler of an operation, and later its value.
template <class Handler, class Value>
class Outcome final : public Postable, public std::enable_shared_from_this<Outcome<Handler, Value>> {
public:
    Outcome(Handler&& handler, const net::any_io_executor& executor, Work work = Work::yes)
        : handler_(std::move(handler)),
          allocator_(net::get_associated_allocator(handler_)),
          executor_(net::get_associated_executor(handler_, executor)) {
        if (work == Work::yes) work_.emplace(executor_);
    }

    void set(Value&& value) noexcept { value_.emplace(std::move(value)); }
    /// Posts to an io_context itself. An any_io_executor in between would allocate memory.
    void post() override {
        if constexpr (std::same_as<Executor, net::any_io_executor>)
            if (const auto* const direct = target_of<Direct>(executor_)) return post_to(*direct);
        post_to(executor_);
    }

private:
    using Executor = net::associated_executor_t<Handler, net::any_io_executor>;
    using Allocator = net::associated_allocator_t<Handler>;
    using Direct = net::io_context::executor_type;

    template <class To>
    void post_to(const To& executor) {
        auto deliver = [self = this->shared_from_this()] { self->deliver(); };
        if constexpr (std::same_as<To, Direct>)
            net::post(net::bind_executor(executor, bind_memory(memory_, std::move(deliver))));
        else
            net::post(net::bind_executor(executor, WithAllocator{allocator_, std::move(deliver)}));
    }

    /// Calls the handler, in its executor. If an executor throws std::bad_alloc although it has accepted the
    /// handler, the handler is posted twice. It is called once.
    void deliver() {
        const auto self = this->shared_from_this();
        if (is_called_.exchange(true)) return;
        auto handler = std::move(handler_);
        if (auto slot = net::get_associated_cancellation_slot(handler); slot.is_connected()) slot.clear();
        std::move(handler)(*std::move(value_));
    }

    Handler handler_;
    const Allocator allocator_;  // a copy, because post() may be called again after the handler was moved
    const Executor executor_;
    std::optional<net::executor_work_guard<Executor>> work_{};
    ReservedMemory memory_{};  // only for a post to an io_context
    std::optional<Value> value_{};
    std::atomic<bool> is_called_{false};
};

/// Returns the value of an operation that cannot begin: a result with this error, or nothing for a leader.
template <class Value>
Value refusal(std::error_code error) {
    if constexpr (std::is_same_v<Value, Result>)
        return Result{error};
    else
        return Value{};
}

/// An AsyncLock, AsyncSemaphore or AsyncLeader. It may be used only while the mutex of its loop is locked.
template <class Async>
class State : public std::enable_shared_from_this<State<Async>> {
public:
    template <class... Arguments>
    explicit State(std::shared_ptr<Loop> of_context, Arguments&&... arguments) : loop(std::move(of_context)) {
        const std::lock_guard guard{loop->mutex()};
        async.emplace(loop->nodes(), std::forward<Arguments>(arguments)...);
    }

    /// Begins an operation by a call of `operation`, and lets the slot cancel it. If another operation is
    /// under way already, the new one ends with operation_in_progress.
    ///
    /// The slot is assigned before the call. Once the operation has begun, another thread can call the
    /// handler, which may destroy the slot.
    template <class Value, class Operation, class Done, class Slot>
    void begin(Operation& operation, Done done, Slot slot) {
        const std::lock_guard guard{loop->mutex()};
        if (!async) return std::move(done)(refusal<Value>(Errc::cancelled));
        if (under_way_) return operation(*async, std::move(done));
        const auto number = ++operations_;
        if (slot.is_connected())
            slot.assign([weak = this->weak_from_this(), number](net::cancellation_type type) {
                const auto state = weak.lock();
                if (state && type != net::cancellation_type::none) state->cancel(number);
            });
        operation(*async, [weak = this->weak_from_this(), done = std::move(done)](Value&& value) mutable {
            if (const auto state = weak.lock()) state->under_way_ = false;
            std::move(done)(std::move(value));
        });
        under_way_ = true;
    }
    void cancel(std::uint64_t operation) noexcept {
        const std::lock_guard guard{loop->mutex()};
        if (async && operation == operations_) async->cancel();
    }
    /// Destroys the AsyncLock. In a child of fork(), lets this object own itself for ever instead.
    static void end(const std::shared_ptr<State>& self) noexcept {
        if (self->loop->belongs_to_parent()) {
            self->kept_ = self;
            return;
        }
        const std::lock_guard guard{self->loop->mutex()};
        self->async.reset();
    }

    const std::shared_ptr<Loop> loop;
    std::optional<Async> async{};  // empty once the Lock is destroyed

private:
    std::uint64_t operations_ = 0;  // the number of the last operation that has begun
    bool under_way_ = false;        // true until the completion of this operation is called
    std::shared_ptr<State> kept_{};
};

/// The executor and the State of a Lock, Semaphore or Leader.
template <class Async>
class Handle {
public:
    using executor_type = net::any_io_executor;

    /// Releases the lock unless it is free, without blocking. An operation that is under way ends with
    /// `cancelled`.
    ~Handle() {
        if (state_) State<Async>::end(state_);
    }
    /// The lock that was moved from keeps its executor. Its acquisitions end with
    /// std::errc::invalid_argument, and its extensions and releases with `not_held`.
    // NOLINTNEXTLINE(performance-move-constructor-init): the other lock keeps its executor
    Handle(Handle&& other) noexcept : executor_(other.executor_), state_(std::move(other.state_)) {}
    Handle& operator=(Handle&& other) noexcept {
        if (this == &other) return *this;
        if (state_) State<Async>::end(state_);
        executor_ = other.executor_;
        state_ = std::move(other.state_);
        return *this;
    }

    executor_type get_executor() const noexcept { return executor_; }

protected:
    template <class... Arguments>
    Handle(const executor_type& executor, Nodes& nodes, Arguments&&... arguments)
        : executor_(executor),
          state_(std::make_shared<State<Async>>(loop_of(executor, nodes),
                                                std::forward<Arguments>(arguments)...)) {}

    /// Makes an asynchronous operation of Asio. Asio makes a handler of the token, and calls the lambda with
    /// it.
    template <class Value, class Token, class Begin>
    auto initiate(Token&& token, std::error_code if_moved_from, Begin begin) {
        auto initiation = [executor = executor_, state = state_, if_moved_from,
                           begin = std::move(begin)](auto&& given) mutable {
            using Handler = std::decay_t<decltype(given)>;
            Handler handler{std::forward<decltype(given)>(given)};
            const auto slot = net::get_associated_cancellation_slot(handler);
            // The completion, which posts the handler. All its memory is allocated now, except the memory
            // that the executor needs for the posting. If there is none, the loop posts the handler later.
            // Throws std::bad_alloc only if there is no loop, or after its shutdown.
            auto done = [outcome = std::make_shared<Outcome<Handler, Value>>(std::move(handler), executor),
                         weak_loop = state ? std::weak_ptr{state->loop}
                                           : std::weak_ptr<Loop>{}](Value&& value) mutable {
                outcome->set(std::move(value));
                if (const auto loop = weak_loop.lock())
                    loop->post(std::move(outcome));
                else
                    outcome->post();
            };
            if (!state) return done(refusal<Value>(if_moved_from));
            state->template begin<Value>(begin, std::move(done), slot);
        };
        return net::async_initiate<Token, void(Value)>(net::bind_executor(executor_, std::move(initiation)),
                                                       token);
    }

    executor_type executor_;
    std::shared_ptr<State<Async>> state_;  // null if moved from
};

/// Returns the options with an on_lost whose calls are posted to the executor, because on_lost must not run
/// while the mutex of the loop is locked. The next LossCall is allocated in advance.
inline LockOptions posting_on_lost(const net::any_io_executor& executor, Nodes& nodes, LockOptions options) {
    if (!options.on_lost) return options;
    using OnLost = std::function<void(const Result&)>;
    using LossCall = Outcome<OnLost, Result>;
    const auto make = [executor, on_lost = std::move(options.on_lost)] {
        return std::make_shared<LossCall>(OnLost{on_lost}, executor, Work::no);
    };
    options.on_lost = [make, next = std::make_shared<std::shared_ptr<LossCall>>(make()),
                       weak_loop = std::weak_ptr{loop_of(executor, nodes)}](const Result& loss) {
        auto call = *next ? std::move(*next) : make();
        if (!redlock::detail::has_memory_for([&] { call->set(Result{loss}); }))
            call->set(Result{loss.error()});
        if (const auto loop = weak_loop.lock()) loop->post(std::move(call));
        *next = make();  // report_loss() catches std::bad_alloc
    };
    return options;
}

}  // namespace detail
}  // namespace REDLOCK_ASIO_NAMESPACE
}  // namespace redlock::asio
