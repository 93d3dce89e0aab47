// Makes an execution context of Asio an event loop of the library.
#pragma once

#include <redlock/async_nodes.hpp>
#include <redlock/detail/asio_library.hpp>
#include <redlock/detail/linked_list.hpp>
#include <redlock/detail/timer_descriptor.hpp>
#include <redlock/event_loop.hpp>
#include <redlock/nodes.hpp>
#include <redlock/process.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <new>
#include <optional>
#include <typeinfo>
#include <utility>
#include <vector>

namespace redlock::asio {
inline namespace REDLOCK_ASIO_NAMESPACE {
namespace detail {

/// The executor for waits on descriptors. It does not post a handler, but calls it at once, in the thread
/// that has found the descriptor ready.
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

/// The memory for one wait or one posted handler, so that Asio needs no other memory for it. When the
/// operation is over, resource.release() makes the memory free for the next one. The handler may own it,
/// because an operation of Asio moves the handler out before it frees the memory.
struct ReservedMemory {
    alignas(std::max_align_t) std::array<std::byte, 256> bytes{};
    std::pmr::monotonic_buffer_resource resource{bytes.data(), bytes.size(), std::pmr::new_delete_resource()};
};

/// A function with an associated allocator. (Asio 1.22.0 has no bind_allocator().)
template <class Allocator, class Function>
struct WithAllocator {
    using allocator_type = Allocator;
    allocator_type get_allocator() const noexcept { return allocator; }
    void operator()() { function(); }

    Allocator allocator;
    Function function;
};
template <class Allocator, class Function>
WithAllocator(Allocator, Function) -> WithAllocator<Allocator, Function>;

/// Returns a function that does the same, and whose operation lies in this memory.
template <class Function>
auto bind_memory(ReservedMemory& memory, Function function) {
    return WithAllocator{std::pmr::polymorphic_allocator<std::byte>{&memory.resource}, std::move(function)};
}

/// A handler that must be posted, and the value to call it with. The object is allocated in advance, but
/// post() needs further memory.
class Postable : public redlock::detail::Linked<Postable> {
public:
    virtual ~Postable() = default;

    /// Posts the handler. If this function throws std::bad_alloc, it can be called again.
    virtual void post() = 0;

private:
    friend class PostableList;
    std::shared_ptr<Postable> self_{};  // while it is in a list
};

/// A list that owns its elements.
class PostableList : public redlock::detail::LinkedList<Postable> {
public:
    ~PostableList() {
        while (!empty()) remove_first();
    }
    void add(std::shared_ptr<Postable> it) noexcept {
        auto& added = *it;
        added.self_ = std::move(it);
        LinkedList::add(added);
    }
    void remove_first() noexcept {
        const auto removed = std::move(take()->self_);  // its destructor may call functions of the user
    }
};

/// Returns the executor that is kept in `executor`, or null if it has another type. (The function target() of
/// Asio 1.22 does not compare the types.)
template <class Executor>
const Executor* target_of(const net::any_io_executor& executor) noexcept {
#if defined(__cpp_rtti) && !defined(ASIO_NO_TYPEID) && !defined(BOOST_ASIO_NO_TYPEID)
    if (executor.target_type() != typeid(Executor)) return nullptr;
#endif
    return executor.target<Executor>();
}

/// Returns the io_context behind an executor, or null if the executor is of another kind.
inline net::io_context* io_context_of(const net::any_io_executor& executor) noexcept {
    using Direct = net::io_context::executor_type;
    if (const auto* const it = target_of<Direct>(executor)) return &net::query(*it, net::execution::context);
    if (const auto* const it = target_of<net::strand<Direct>>(executor))
        return &net::query(it->get_inner_executor(), net::execution::context);
    if (const auto* const it = target_of<net::strand<net::any_io_executor>>(executor))
        return io_context_of(it->get_inner_executor());
    return nullptr;
}

/// One execution context as the event loop of one Nodes object. Callers must lock mutex() while they use the
/// loop, except for shut_down(), and for what is constant, as in belongs_to_parent(). The mutex is recursive:
/// a std::stop_callback on lost() runs while it is locked, and may call a function of a lock.
///
/// The timer is a descriptor, because a timer of Asio would need memory when it is set, and wake_after() must
/// not fail. For a delay of 0, wake_after() posts a handler instead, which the io_context calls behind the
/// handlers that are ready now. The operations that these handlers begin are then written together, and the
/// timer need not be set. Other contexts than an io_context use the timer for a delay of 0, too.
class Loop final : public EventLoop, public std::enable_shared_from_this<Loop> {
public:
    /// `executor` belongs to `context`.
    Loop(net::execution_context& context, const net::any_io_executor& executor, Nodes& nodes)
        : executor_(context),
          io_context_(io_context_of(executor)),
          posting_(io_context_ ? io_context_->get_executor() : executor),
          timer_(std::make_shared<Descriptor>(executor_, redlock::detail::new_timer_descriptor())),
          nodes_(nodes, *this) {}

    /// Returns true in a child of fork(), which must neither use nor destroy the object.
    bool belongs_to_parent() const noexcept { return process_ != this_process(); }
    std::recursive_mutex& mutex() noexcept { return mutex_; }
    AsyncNodes& nodes() noexcept { return nodes_; }
    /// Returns true if the Nodes was destroyed and nothing is left to do.
    bool expired() const noexcept { return unposted_.empty() && nodes_.expired(); }

    /// Posts a handler. If there is no memory, posts it later, or throws std::bad_alloc after the shutdown.
    /// An exception of the executor is passed on.
    void post(std::shared_ptr<Postable> handler) {
        if (!timer_) return handler->post();  // after the shutdown
        const bool is_first = unposted_.empty();
        unposted_.add(std::move(handler));
        if (is_first) post_all();  // otherwise the timer calls post_all()
    }

    /// Releases all descriptors, and ends all operations without calling a handler.
    void shut_down() noexcept {
        PostableList unposted;  // is destroyed when the mutex is unlocked
        const std::lock_guard guard{mutex_};
        nodes_.shut_down();
        unposted.add_all(unposted_);
        for (const auto& [fd, descriptor] : descriptors_) release(descriptor);
        descriptors_.clear();
        if (timer_) timer_->stream.reset();
        timer_.reset();
    }

    /// Throws std::bad_alloc also if the kernel cannot watch another descriptor. Asio reports that by an
    /// exception of its own, which EventLoop::watch() must not throw.
    void watch(int fd, bool reads, bool writes) override {
        auto& it = descriptors_[fd];
        try {
            if (!it) it = std::make_shared<Descriptor>(executor_, fd);
        } catch (...) {
            throw std::bad_alloc{};
        }
        it->reads.wanted = reads;
        it->writes.wanted = writes;
        wait(it);
    }

    void forget(int fd) noexcept override {
        const auto it = descriptors_.find(fd);
        if (it == descriptors_.end()) return;
        release(it->second);
        descriptors_.erase(it);
    }

    // NOLINTNEXTLINE(bugprone-exception-escape): ReservedMemory has room for the wait and for the handler
    void wake_after(std::chrono::nanoseconds delay) noexcept override {
        if (!unposted_.empty()) delay = std::min<std::chrono::nanoseconds>(delay, posting_pause);
        if (delay <= delay.zero() && io_context_ != nullptr) return post_wake_up();
        timer_->reads.wanted = delay != delay.max();
        if (timer_->reads.wanted)
            redlock::detail::set_timer(timer_->stream->native_handle(), delay, timer_is_due_);
        wait(timer_);
    }

private:
    /// The time after which a handler that could not be posted is posted again.
    static constexpr std::chrono::milliseconds posting_pause{1};

    struct Direction {
        bool wanted = false;  // the library wants to know when the descriptor is ready
        bool waits = false;   // a wait of Asio is under way
        ReservedMemory memory{};
    };
    struct Descriptor {
        Descriptor(const InContext& executor, int fd) : stream(std::in_place, executor, fd) {}
        // Empty if the descriptor was released. A Wait may then keep this object longer than the context.
        std::optional<net::posix::basic_stream_descriptor<InContext>> stream;
        Direction reads{};
        Direction writes{};
    };
    using Shared = std::shared_ptr<Descriptor>;

    /// The handler of a wait. It owns the memory of its operation. Newer versions of Asio post it to its
    /// immediate executor if the wait ends with an error at once.
    struct Wait {
        using allocator_type = std::pmr::polymorphic_allocator<std::byte>;
        using immediate_executor_type = net::any_io_executor;
        const immediate_executor_type& get_immediate_executor() const noexcept { return loop->posting_; }
        allocator_type get_allocator() const noexcept { return &((*descriptor).*direction).memory.resource; }
        void operator()(ErrorCode error) const {
            if (loop->belongs_to_parent()) return;
            const std::lock_guard guard{loop->mutex_};
            loop->end_wait(descriptor, direction, error);
        }

        std::shared_ptr<Loop> loop;
        Shared descriptor;
        Direction Descriptor::*direction;
    };

    void post_wake_up() {
        if (std::exchange(wake_up_is_posted_, true)) return;
        wake_up_memory_.resource.release();
        net::post(io_context_->get_executor(), bind_memory(wake_up_memory_, [self = shared_from_this()] {
                      if (self->belongs_to_parent()) return;
                      const std::lock_guard guard{self->mutex_};
                      self->end_wake_up();
                  }));
    }
    void end_wake_up() {
        wake_up_is_posted_ = false;
        if (const auto timer = timer_) report(timer);  // otherwise the loop was shut down
    }

    /// Destroys the stream without closing the descriptor. `it` is null if watch() has thrown.
    static void release(const Shared& it) noexcept {
        if (!it) return;
        it->stream->release();
        it->stream.reset();
    }

    void wait(const Shared& it) {
        if (it->reads.wanted && !it->reads.waits)
            wait(it, &Descriptor::reads, net::posix::descriptor_base::wait_read);
        if (it->writes.wanted && !it->writes.waits)
            wait(it, &Descriptor::writes, net::posix::descriptor_base::wait_write);
        const bool wanted = it->reads.wanted || it->writes.wanted;
        ErrorCode ignored;
        if (!wanted && (it->reads.waits || it->writes.waits)) it->stream->cancel(ignored);
    }

    void wait(const Shared& it, Direction Descriptor::*direction,
              net::posix::descriptor_base::wait_type type) {
        (*it.*direction).memory.resource.release();
        it->stream->async_wait(type, Wait{shared_from_this(), it, direction});
        (*it.*direction).waits = true;
    }

    /// Posts the handlers that wait for memory. If there still is none, the timer calls this function again.
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

    /// Ends a wait. Does nothing for a descriptor that was forgotten, because it has no stream any more.
    void end_wait(const Shared& it, Direction Descriptor::*direction, ErrorCode error) {
        (*it.*direction).waits = false;
        if (!it->stream) return;
        if (error || !(*it.*direction).wanted) return wait(it);
        if (it == timer_) timer_is_due_ = std::chrono::nanoseconds::max();
        report(it);
    }

    /// Reports that a descriptor is ready, or an immediate wake-up as one of the timer. Then begins the waits
    /// that the library wants now: ready() and wake() can call any function of this object.
    void report(const Shared& it) {
        it->reads.wanted = it->writes.wanted = false;
        if (it == timer_) {
            post_all();
            wake();
        } else {
            ready(it->stream->native_handle());
        }
        if (it->stream) wait(it);
    }

    const std::int64_t process_ = this_process();
    std::recursive_mutex mutex_{};
    const InContext executor_;
    net::io_context* const io_context_;   // null if the context is of another kind
    const net::any_io_executor posting_;  // the immediate executor of each Wait
    // Guarded by mutex_.
    Shared timer_;  // null after the shutdown
    // The argument `due` of set_timer().
    std::chrono::nanoseconds timer_is_due_ = std::chrono::nanoseconds::max();
    bool wake_up_is_posted_ = false;
    ReservedMemory wake_up_memory_{};
    std::map<int, Shared> descriptors_{};
    PostableList unposted_{};
    AsyncNodes nodes_;
};

/// The loops of one execution context: one for each Nodes object that its locks use.
class Service final : public net::execution_context::service {
public:
    using key_type = Service;
    static inline net::execution_context::id id{};

    /// Asio destroys its services in the reverse order in which they were made. The unused descriptor makes
    /// the service of the descriptors first, so that the loops can use it until they are shut down.
    explicit Service(net::execution_context& context) : service(context) {
        const net::posix::basic_stream_descriptor<InContext> unused{InContext{context}};
    }
    /// Asio does not call shutdown() if the service was made while the context was being destroyed, by the
    /// destructor of a handler.
    ~Service() override {
        if (!is_shut_down_) shutdown();
    }

    /// Returns the loop of these nodes, and makes it if there is none. `executor` belongs to this context.
    /// Drops the loops whose nodes were destroyed, except those whose mutex is locked, because they are in
    /// use. Waiting for the mutex could be a deadlock, because a std::stop_callback can call this function.
    /// After the shutdown, returns a new loop that is shut down.
    std::shared_ptr<Loop> loop_of(const net::any_io_executor& executor, Nodes& nodes) {
        const std::lock_guard guard{mutex_};
        if (is_shut_down_) {
            auto loop = std::make_shared<Loop>(context(), executor, nodes);
            loop->shut_down();
            return loop;
        }
        std::erase_if(loops_, [](const auto& loop) {
            const std::unique_lock free{loop->mutex(), std::try_to_lock};
            if (!free.owns_lock() || !loop->expired()) return false;
            loop->shut_down();
            return true;
        });
        for (const auto& loop : loops_)
            if (loop->nodes().are_of(nodes)) return loop;  // reads constants, so it needs no mutex
        return loops_.emplace_back(std::make_shared<Loop>(context(), executor, nodes));
    }

private:
    /// The handlers that this function destroys may call loop_of(). A child of fork() keeps the loops for
    /// ever, because it may share the reactor with its parent.
    void shutdown() noexcept override {
        is_shut_down_ = true;
        const auto loops = std::exchange(loops_, {});
        if (process_ != this_process()) {
            (void)new auto(loops);
            return;
        }
        for (const auto& loop : loops) loop->shut_down();
    }

    const std::int64_t process_ = this_process();
    std::mutex mutex_{};
    // Guarded by mutex_, except in shutdown(), when nobody else may use the context.
    std::vector<std::shared_ptr<Loop>> loops_{};
    bool is_shut_down_ = false;  // true from the beginning of shutdown()
};

inline std::shared_ptr<Loop> loop_of(const net::any_io_executor& executor, Nodes& nodes) {
    auto& context = net::query(executor, net::execution::context);
    return net::use_service<Service>(context).loop_of(executor, nodes);
}

}  // namespace detail
}  // namespace REDLOCK_ASIO_NAMESPACE
}  // namespace redlock::asio
