// Locks for programs with Asio. No function blocks: a coroutine, a callback or any other completion token
// waits for the end of an operation.
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
// lock.hpp documents what a lock promises, async_lock.hpp how its functions differ in an event loop. The
// class redlock::asio::Lock is at the end of this file.
//
// The header needs Boost.Asio of Boost 1.81 or later, or standalone Asio 1.22 or later. If both are
// installed, it takes Boost.Asio, unless REDLOCK_ASIO_STANDALONE is defined before the header is included.
// One program can have source files with both. The CMake target is redlock::asio; the program finds Asio
// itself.
#pragma once

#include <redlock/async_lock.hpp>
#include <redlock/async_nodes.hpp>
#include <redlock/detail/timer_descriptor.hpp>
#include <redlock/error.hpp>
#include <redlock/event_loop.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/process.hpp>
#include <redlock/resources.hpp>
#include <redlock/result.hpp>

#if defined(REDLOCK_ASIO_STANDALONE) && defined(REDLOCK_ASIO_BOOST)
#error "redlock: define REDLOCK_ASIO_STANDALONE or REDLOCK_ASIO_BOOST, not both"
#elif !defined(REDLOCK_ASIO_STANDALONE) && !defined(REDLOCK_ASIO_BOOST)
#if __has_include(<boost/asio/version.hpp>)
#define REDLOCK_ASIO_BOOST
#elif __has_include(<asio/version.hpp>)
#define REDLOCK_ASIO_STANDALONE
#else
#error "redlock/asio.hpp needs Boost.Asio 1.81 or Asio 1.22; on Debian 12: libboost1.81-dev or libasio-dev"
#endif
#endif

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio/version.hpp>
#if BOOST_ASIO_VERSION < 102600
#error "redlock/asio.hpp needs Boost.Asio 1.81 or later; on Debian 12, install libboost1.81-dev"
#endif
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#define REDLOCK_ASIO_NAMESPACE boost_asio
#elif defined(REDLOCK_ASIO_STANDALONE)
#include <asio/version.hpp>
#if ASIO_VERSION < 102200
#error "redlock/asio.hpp needs Asio 1.22 or later; on Debian 12, install libasio-dev"
#endif
#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/query.hpp>
#define REDLOCK_ASIO_NAMESPACE standalone_asio
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock::asio {
inline namespace REDLOCK_ASIO_NAMESPACE {

#if defined(REDLOCK_ASIO_BOOST)
namespace net = ::boost::asio;
using ErrorCode = ::boost::system::error_code;
#else
namespace net = ::asio;
using ErrorCode = std::error_code;
#endif

namespace detail {

/// The executor of the descriptors that a loop waits for. It calls a handler at once, in the thread of the
/// context that has found the descriptor ready.
class InContext {
public:
    explicit InContext(net::execution_context& context) noexcept : context_(&context) {}

    net::execution_context& query(net::execution::context_t /*property*/) const noexcept { return *context_; }
    template <class Function>
    void execute(Function&& function) const {
        std::forward<Function>(function)();
    }
    bool operator==(const InContext&) const noexcept = default;

private:
    net::execution_context* context_;
};

/// The memory for one wait at a time, so that a wait can begin although no memory is left.
class WaitMemory {
public:
    void* allocate(std::size_t bytes) {
        if (used_ || bytes > bytes_.size()) return ::operator new(bytes);
        used_ = true;
        return bytes_.data();
    }
    void deallocate(void* memory) noexcept {
        if (memory == bytes_.data())
            used_ = false;
        else
            ::operator delete(memory);
    }

private:
    alignas(std::max_align_t) std::array<std::byte, 256> bytes_;
    bool used_ = false;
};

template <class T>
struct WaitAllocator {
    using value_type = T;

    explicit WaitAllocator(WaitMemory& in) noexcept : memory(&in) {}
    template <class Other>
    WaitAllocator(const WaitAllocator<Other>& other) noexcept  // NOLINT(google-explicit-constructor)
        : memory(other.memory) {}

    T* allocate(std::size_t count) { return static_cast<T*>(memory->allocate(count * sizeof(T))); }
    void deallocate(T* it, std::size_t /*count*/) noexcept { memory->deallocate(it); }
    bool operator==(const WaitAllocator&) const noexcept = default;

    WaitMemory* memory;
};

/// A handler with its value, which must be posted. It is allocated when its operation begins, but to post it
/// takes memory.
class Postable {
public:
    Postable() = default;
    Postable(const Postable&) = delete;
    Postable& operator=(const Postable&) = delete;
    virtual ~Postable() = default;

    /// If it throws std::bad_alloc, it can be called again.
    virtual void post() = 0;

private:
    friend class PostableList;
    std::shared_ptr<Postable> next_{};
};

/// A queue that needs no memory.
class PostableList {
public:
    PostableList() = default;
    PostableList(const PostableList&) = delete;
    PostableList& operator=(const PostableList&) = delete;
    ~PostableList() {
        while (first_) remove_first();
    }

    bool empty() const noexcept { return first_ == nullptr; }
    const std::shared_ptr<Postable>& first() const noexcept { return first_; }
    void add(std::shared_ptr<Postable> it) noexcept {
        auto* const added = it.get();
        (last_ ? last_->next_ : first_) = std::move(it);
        last_ = added;
    }
    void remove_first() noexcept {
        const auto removed = std::move(first_);  // its destructor may call functions of the user
        first_ = std::move(removed->next_);
        if (!first_) last_ = nullptr;
    }
    /// Moves all elements to the other list, which must be empty.
    void move_to(PostableList& other) noexcept {
        other.first_ = std::move(first_);
        other.last_ = std::exchange(last_, nullptr);
    }

private:
    std::shared_ptr<Postable> first_{};
    Postable* last_ = nullptr;
};

/// One execution context as the event loop of one Nodes. Everybody locks mutex() before they use the object.
/// The mutex is recursive, because a callback on lost() may call a function of a lock.
///
/// The timer is a descriptor, because a timer of Asio would need memory when it is set, and wake_after()
/// cannot report that there is none.
class Loop final : public EventLoop, public std::enable_shared_from_this<Loop> {
public:
    Loop(net::execution_context& context, Nodes& nodes)
        : executor_(context),
          timer_(std::make_shared<Descriptor>(executor_, redlock::detail::new_timer_descriptor())),
          nodes_(nodes, *this) {}

    /// Returns true in a child of fork(). There the object must be neither used nor destroyed, because the
    /// mutex may be locked for ever, and the descriptors may belong to the parent as well.
    bool belongs_to_parent() const noexcept { return process_ != this_process(); }
    std::recursive_mutex& mutex() noexcept { return mutex_; }
    AsyncNodes& nodes() noexcept { return nodes_; }
    /// Returns true if the Nodes was destroyed and nothing is left to do.
    bool expired() const noexcept { return unposted_.empty() && nodes_.expired(); }

    /// Posts a handler. If there is no memory for that, posts it later. After the shutdown, throws
    /// std::bad_alloc in this case.
    void post(std::shared_ptr<Postable> handler) {
        if (!timer_) return handler->post();
        const bool is_first = unposted_.empty();
        unposted_.add(std::move(handler));
        if (is_first) post_all();
    }

    /// Releases all descriptors, and ends all operations without calling a handler.
    void shut_down() noexcept {
        PostableList unposted;  // is destroyed when the mutex is unlocked
        const std::lock_guard guard{mutex_};
        nodes_.shut_down();
        unposted_.move_to(unposted);
        for (const auto& [fd, descriptor] : descriptors_)
            if (descriptor) descriptor->stream.release();
        descriptors_.clear();
        if (!timer_) return;
        ErrorCode ignored;
        timer_->stream.close(ignored);
        timer_.reset();  // before its context is destroyed
    }

    void watch(int fd, bool reads, bool writes) override {
        auto& it = descriptors_[fd];
        if (!it) it = std::make_shared<Descriptor>(executor_, fd);
        it->reads.wanted = reads;
        it->writes.wanted = writes;
        wait(it);
    }

    void forget(int fd) noexcept override {
        const auto it = descriptors_.find(fd);
        if (it == descriptors_.end()) return;
        // Otherwise the destructor of the stream would close the descriptor. There is none if watch() has
        // thrown.
        if (it->second) it->second->stream.release();
        descriptors_.erase(it);
    }

    // NOLINTNEXTLINE(bugprone-exception-escape): a wait needs no memory
    void wake_after(std::chrono::nanoseconds delay) noexcept override {
        if (!unposted_.empty()) delay = std::min<std::chrono::nanoseconds>(delay, posting_pause);
        timer_->reads.wanted = delay != delay.max();
        if (timer_->reads.wanted) redlock::detail::set_timer(timer_->stream.native_handle(), delay);
        wait(timer_);
    }

private:
    /// The time after which a handler that could not be posted is posted again.
    static constexpr std::chrono::milliseconds posting_pause{1};

    struct Direction {
        bool wanted = false;  // the library wants to know when the descriptor is ready
        bool waits = false;   // a wait of Asio is under way
        WaitMemory memory{};
    };
    struct Descriptor {
        Descriptor(const InContext& executor, int fd) : stream(executor, fd) {}
        net::posix::basic_stream_descriptor<InContext> stream;
        Direction reads{};
        Direction writes{};
    };
    using Shared = std::shared_ptr<Descriptor>;

    /// The handler of a wait. It owns the memory of its operation.
    struct Wait {
        using allocator_type = WaitAllocator<std::byte>;
        allocator_type get_allocator() const noexcept {
            return allocator_type{((*descriptor).*direction).memory};
        }
        void operator()(ErrorCode error) const {
            if (loop->belongs_to_parent()) return;
            const std::lock_guard guard{loop->mutex_};
            loop->end_wait(descriptor, direction, error);
        }

        std::shared_ptr<Loop> loop;
        Shared descriptor;
        Direction Descriptor::*direction;
    };

    void wait(const Shared& it) {
        if (it->reads.wanted && !it->reads.waits) wait(it, &Descriptor::reads, it->stream.wait_read);
        if (it->writes.wanted && !it->writes.waits) wait(it, &Descriptor::writes, it->stream.wait_write);
        const bool wanted = it->reads.wanted || it->writes.wanted;
        ErrorCode ignored;
        if (!wanted && (it->reads.waits || it->writes.waits)) it->stream.cancel(ignored);
    }

    void wait(const Shared& it, Direction Descriptor::*direction,
              net::posix::descriptor_base::wait_type type) {
        it->stream.async_wait(type, Wait{shared_from_this(), it, direction});
        (*it.*direction).waits = true;  // not before, because async_wait() may throw
    }

    /// Posts the handlers that wait for memory. The wake-up of the library can come too early then, which
    /// does no harm.
    void post_all() {
        try {
            for (; !unposted_.empty(); unposted_.remove_first()) unposted_.first()->post();
        } catch (const std::bad_alloc&) {
            wake_after(posting_pause);
        } catch (...) {  // the executor does not accept the handler
            unposted_.remove_first();
            wake_after(posting_pause);
            throw;
        }
    }

    /// Ends a wait: reports the descriptor if the library wants that, and begins the waits that it wants now.
    /// Does nothing for a descriptor that was forgotten, which is not open any more.
    void end_wait(const Shared& it, Direction Descriptor::*direction, ErrorCode error) {
        (*it.*direction).waits = false;
        if (!it->stream.is_open()) return;
        if (!error && (*it.*direction).wanted) {
            it->reads.wanted = it->writes.wanted = false;
            if (it == timer_) {
                post_all();
                wake();
            } else {
                ready(it->stream.native_handle());
            }
        }
        if (it->stream.is_open()) wait(it);
    }

    const std::int64_t process_ = this_process();
    std::recursive_mutex mutex_{};
    const InContext executor_;
    // Guarded by mutex_.
    Shared timer_;  // null after the shutdown
    std::map<int, Shared> descriptors_{};
    PostableList unposted_{};
    AsyncNodes nodes_;
};

/// The loops of one execution context: one for each Nodes that its locks use.
class Service final : public net::execution_context::service {
public:
    using key_type = Service;
    static inline net::execution_context::id id{};

    explicit Service(net::execution_context& context) : service(context) {}

    /// Returns the loop of these nodes, and makes it if there is none. Drops the loops whose nodes were
    /// destroyed. Only tries to lock the mutex of a loop, because a callback on lost() can call this function
    /// while the mutex is held. Such a loop is in use.
    std::shared_ptr<Loop> loop_of(Nodes& nodes) {
        const std::lock_guard guard{mutex_};
        std::erase_if(loops_, [](const auto& loop) {
            const std::unique_lock expires{loop->mutex(), std::try_to_lock};
            if (!expires || !loop->expired()) return false;
            loop->shut_down();
            return true;
        });
        for (const auto& loop : loops_)
            if (loop->nodes().are_of(nodes)) return loop;
        return loops_.emplace_back(std::make_shared<Loop>(context(), nodes));
    }

private:
    /// A child of fork() must not touch the reactor, which it may share with its parent.
    void shutdown() noexcept override {
        if (process_ != this_process()) {
            (void)new auto(std::move(loops_));
            return;
        }
        for (const auto& loop : loops_) loop->shut_down();
        loops_.clear();
    }

    const std::int64_t process_ = this_process();
    std::mutex mutex_{};
    std::vector<std::shared_ptr<Loop>> loops_{};  // guarded by mutex_
};

/// The handler of an operation, and later its value. It keeps the executor of the handler at work until the
/// handler is called.
template <class Handler, class Value>
class Outcome final : public Postable, public std::enable_shared_from_this<Outcome<Handler, Value>> {
public:
    Outcome(Handler&& handler, const net::any_io_executor& executor)
        : handler_(std::move(handler)), work_(net::get_associated_executor(handler_, executor)) {}

    void set(Value&& value) noexcept { value_.emplace(std::move(value)); }
    void post() override { net::post(Delivery{this->shared_from_this(), work_.get_executor()}); }

private:
    using Executor = net::associated_executor_t<Handler, net::any_io_executor>;

    /// What Asio calls in the executor of the handler.
    class Delivery {
    public:
        using executor_type = Executor;
        using allocator_type = net::associated_allocator_t<Handler>;

        Delivery(std::shared_ptr<Outcome> outcome, const Executor& executor)
            : outcome_(std::move(outcome)), executor_(executor) {}

        executor_type get_executor() const noexcept { return executor_; }
        allocator_type get_allocator() const noexcept {
            return net::get_associated_allocator(outcome_->handler_);
        }

        /// If an executor throws std::bad_alloc although it has accepted the handler, the handler is posted
        /// twice. It is called once.
        void operator()() {
            if (outcome_->is_called_.exchange(true)) return;
            auto handler = std::move(outcome_->handler_);
            auto value = *std::move(outcome_->value_);
            outcome_.reset();
            if (auto slot = net::get_associated_cancellation_slot(handler); slot.is_connected()) slot.clear();
            std::move(handler)(std::move(value));
        }

    private:
        std::shared_ptr<Outcome> outcome_;
        Executor executor_;
    };

    Handler handler_;
    net::executor_work_guard<Executor> work_;
    std::optional<Value> value_{};
    std::atomic<bool> is_called_{false};
};

/// The completion of an operation: has its handler posted. Everything but the posting itself is allocated
/// when the operation begins. The posting takes memory, because the executor can be of any type. If there is
/// none, the loop posts the handler later.
template <class Handler, class Value>
class Posting {
public:
    /// `loop` is null if there is none, because the lock was moved from.
    Posting(Handler&& handler, const net::any_io_executor& executor, std::weak_ptr<Loop> loop)
        : outcome_(std::make_shared<Outcome<Handler, Value>>(std::move(handler), executor)),
          loop_(std::move(loop)) {}

    /// Throws std::bad_alloc only if there is no loop, or after its shutdown.
    void operator()(Value value) && {
        outcome_->set(std::move(value));
        if (const auto loop = loop_.lock())
            loop->post(std::move(outcome_));
        else
            outcome_->post();
    }

private:
    std::shared_ptr<Outcome<Handler, Value>> outcome_;
    std::weak_ptr<Loop> loop_;
};

/// Returns the value of an operation that cannot begin: a result with this error, or nothing for a leader.
template <class Value>
Value refusal(std::error_code error) {
    if constexpr (std::is_same_v<Value, Result>)
        return Result{error};
    else
        return Value{};
}

/// An AsyncLock, AsyncSemaphore or AsyncLeader (here called the lock) with the mutex of its loop.
template <class Async>
class State : public std::enable_shared_from_this<State<Async>> {
public:
    template <class... Arguments>
    explicit State(std::shared_ptr<Loop> of_context, Arguments&&... arguments) : loop(std::move(of_context)) {
        const std::lock_guard guard{loop->mutex()};
        lock.emplace(loop->nodes(), std::forward<Arguments>(arguments)...);
    }

    /// Begins an operation, which the slot can cancel. If another one is under way, `begin` ends this one
    /// with operation_in_progress.
    ///
    /// The slot is assigned before the operation begins. Afterwards, another thread could call the handler,
    /// and the handler may destroy the slot.
    template <class Value, class Begin, class Done, class Slot>
    void begin(Begin& begin, Done done, Slot slot) {
        const std::lock_guard guard{loop->mutex()};
        if (!lock) return std::move(done)(refusal<Value>(Errc::cancelled));
        if (under_way_) return begin(*lock, std::move(done));
        const auto operation = ++operations_;
        if (slot.is_connected())
            slot.assign([weak = this->weak_from_this(), operation](net::cancellation_type type) {
                const auto state = weak.lock();
                if (state && type != net::cancellation_type::none) state->cancel(operation);
            });
        begin(*lock, [weak = this->weak_from_this(), done = std::move(done)](Value value) mutable {
            if (const auto state = weak.lock()) state->under_way_ = false;
            std::move(done)(std::move(value));
        });
        under_way_ = true;
    }
    void cancel(std::uint64_t operation) noexcept {
        const std::lock_guard guard{loop->mutex()};
        if (lock && operation == operations_) lock->cancel();
    }
    /// Destroys the lock. In a child of fork(), keeps it for ever.
    static void end(std::shared_ptr<State> self) noexcept {
        if (self->loop->belongs_to_parent()) {
            auto& kept = self->kept_;
            kept = std::move(self);
            return;
        }
        const std::lock_guard guard{self->loop->mutex()};
        self->lock.reset();
    }

    const std::shared_ptr<Loop> loop;
    std::optional<Async> lock{};  // empty once the Lock is destroyed

private:
    std::uint64_t operations_ = 0;  // the number of the last operation that has begun
    bool under_way_ = false;        // true until the completion of this operation is called
    std::shared_ptr<State> kept_{};
};

/// Begins an operation. Asio calls it with the handler that it has made of the completion token.
template <class Async, class Value, class Begin>
class Initiation {
public:
    using executor_type = net::any_io_executor;

    Initiation(executor_type executor, std::shared_ptr<State<Async>> state, std::error_code if_moved_from,
               Begin begin)
        : executor_(std::move(executor)),
          state_(std::move(state)),
          if_moved_from_(if_moved_from),
          begin_(std::move(begin)) {}

    executor_type get_executor() const noexcept { return executor_; }

    template <class Given>
    void operator()(Given&& given) {
        using Handler = std::decay_t<Given>;
        Handler handler{std::forward<Given>(given)};
        const auto slot = net::get_associated_cancellation_slot(handler);
        Posting<Handler, Value> done{std::move(handler), executor_,
                                     state_ ? std::weak_ptr{state_->loop} : std::weak_ptr<Loop>{}};
        if (!state_) return std::move(done)(refusal<Value>(if_moved_from_));
        state_->template begin<Value>(begin_, std::move(done), slot);
    }

private:
    executor_type executor_;
    std::shared_ptr<State<Async>> state_;  // null if the Lock was moved from
    std::error_code if_moved_from_;
    Begin begin_;
};

inline std::shared_ptr<Loop> loop_of(const net::any_io_executor& executor, Nodes& nodes) {
    auto& context = net::query(executor, net::execution::context);
    return net::use_service<Service>(context).loop_of(nodes);
}

/// The executor and the State of a Lock, Semaphore or Leader (here called the lock).
template <class Async>
class Handle {
public:
    using executor_type = net::any_io_executor;

    /// Releases the lock unless it is free, without blocking. Cancels an operation that is under way.
    ~Handle() {
        if (state_) State<Async>::end(std::move(state_));
    }
    /// The lock that was moved from keeps its executor. Its acquisitions end with
    /// std::errc::invalid_argument, and its extensions and releases with `not_held`.
    // NOLINTNEXTLINE(performance-move-constructor-init): the other lock keeps its executor
    Handle(Handle&& other) noexcept : executor_(other.executor_), state_(std::move(other.state_)) {}
    Handle& operator=(Handle&& other) noexcept {
        if (this == &other) return *this;
        if (state_) State<Async>::end(std::move(state_));
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

    template <class Value, class Token, class Begin>
    auto initiate(Token&& token, std::error_code if_moved_from, Begin begin) {
        return net::async_initiate<Token, void(Value)>(
            Initiation<Async, Value, Begin>{executor_, state_, if_moved_from, std::move(begin)}, token);
    }

    executor_type executor_;
    std::shared_ptr<State<Async>> state_;  // null if moved from
};

/// Makes the executor call on_lost, because it must not run while the mutex of the loop is held.
inline LockOptions posting_on_lost(const net::any_io_executor& executor, LockOptions options) {
    if (options.on_lost)
        options.on_lost = [executor, on_lost = std::move(options.on_lost)](const Result& loss) {
            net::post(executor, [on_lost, loss] { on_lost(loss); });
        };
    return options;
}

/// The queries and operations that a Lock and a Semaphore have.
template <class Async>
class Operations : public Handle<Async> {
public:
    using executor_type = net::any_io_executor;

    // ---- Queries, see redlock::Lock.

    bool valid() const noexcept { return this->state_ && this->state_->lock->valid(); }
    std::chrono::nanoseconds remaining() const noexcept {
        return this->state_ ? this->state_->lock->remaining() : std::chrono::nanoseconds::zero();
    }
    std::stop_token lost() const { return this->state_ ? this->state_->lock->lost() : std::stop_token{}; }
    const std::string& resource() const noexcept {
        static const std::string none;
        return this->state_ ? this->state_->lock->resource() : none;
    }
    std::string_view owner() const noexcept {
        return this->state_ ? this->state_->lock->owner() : std::string_view{};
    }
    std::uint64_t fencing_token() const noexcept {
        return this->state_ ? this->state_->lock->fencing_token() : 0;
    }

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
        // A coroutine that waits already could not catch the exception.
        if (this->state_) this->state_->lock->check_ttl(ttl);
        return this->template initiate<Result>(
            std::forward<Token>(token), Errc::not_held,
            [ttl](Async& lock, Completion done) { lock.extend(ttl, std::move(done)); });
    }

    /// Releases the lock. valid() is false once the operation has begun.
    template <class Token = net::default_completion_token_t<executor_type>>
    auto async_release(Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), Errc::not_held,
            [](Async& lock, Completion done) { lock.release(std::move(done)); });
    }

protected:
    Operations(const executor_type& executor, Nodes& nodes, auto&&... arguments)
        : Handle<Async>(executor, nodes, std::forward<decltype(arguments)>(arguments)...) {}

private:
    static std::error_code cannot_acquire() noexcept {
        return std::make_error_code(std::errc::invalid_argument);
    }
};

}  // namespace detail

/// A lock whose operations are asynchronous operations of Asio.
///
/// Operations: the completion signature is `void(redlock::Result)`. With use_awaitable, co_await returns the
/// Result, and failures do not throw. The handler is called as if by post(): by its associated executor, or
/// by the executor of the lock if it has none. Only one operation of a lock can be under way; a second one
/// ends with std::errc::operation_in_progress.
///
/// A function that begins an operation may throw std::bad_alloc. Otherwise the handler is called once. If
/// there is no memory to post it, the context tries again.
///
/// Cancellation, of any type, ends an acquisition with `cancelled` within two node_timeouts, unless it has
/// succeeded already. No node that can be reached keeps a key then. Extensions and releases cannot be
/// cancelled, because they end soon.
///
/// Lifetime: destroy a lock before its nodes. It may be destroyed after its context, unless its executor is a
/// strand. When the context is destroyed, no handler is called any more; the nodes send the releases that are
/// left to do, and a stop is requested on lost() if the lock has a watchdog. After fork() the child may only
/// destroy the context and the locks.
///
/// Threads: one Lock belongs to one thread or strand at a time. Different locks may be used by different
/// threads, even if several threads run the context. These threads do the work of the library. A
/// std::stop_callback on lost() is called while a mutex of the library is held: it may make locks and call
/// their functions, but it must not wait for another thread.
class Lock : public detail::Operations<AsyncLock> {
public:
    /// Prepares a lock, see the constructor of redlock::Lock. Throws std::system_error if the process has no
    /// descriptor left for a timer.
    ///
    /// LockOptions::watchdog must be null or redlock::loop_watchdog(). The executor calls
    /// LockOptions::on_lost, and may do so after a release.
    Lock(const executor_type& executor, Nodes& nodes, ResourceList resources, LockOptions options = {})
        : Operations(executor, nodes, std::move(resources),
                     detail::posting_on_lost(executor, std::move(options))) {}

    /// The same, with the executor of a context such as an io_context.
    template <class Context>
    requires std::is_convertible_v<Context&, net::execution_context&> Lock(Context& context, Nodes& nodes,
                                                                           ResourceList resources,
                                                                           LockOptions options = {})
        : Lock(executor_type{context.get_executor()}, nodes, std::move(resources), std::move(options)) {}

    Resources resources() const noexcept { return state_ ? state_->lock->resources() : Resources{}; }
};

}  // namespace REDLOCK_ASIO_NAMESPACE
}  // namespace redlock::asio
