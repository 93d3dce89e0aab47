// The interface through which the library uses an event loop of the program, such as that of libuv, Qt or a
// poll() loop. Programs with Asio use `redlock/asio.hpp` instead.
//
// A program derives a class from EventLoop. The derived class implements three functions, which the library
// calls:
//
//     function           | meaning
//     -------------------+-----------------------------------------------------
//     watch(fd, ...)     | call ready(fd) once, when the descriptor is ready
//     forget(fd)         | stop watching the descriptor
//     wake_after(delay)  | call wake() once, after this time
//
// EventLoop has the functions ready() and wake(), which the derived class calls. They do the work of the
// library: they read replies, and call the functions that the program has passed to the library.
//
// `examples/poll_loop.hpp` is a complete example.
//
// The library starts no thread for a loop, except a short-lived one to resolve a host name or to query
// Sentinels.
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/export.hpp>

#include <chrono>

namespace redlock {

/// The interface to an event loop of the program. An AsyncNodes (async_nodes.hpp) has connections that the
/// loop watches. One EventLoop object serves one AsyncNodes, whose constructor says how long the object must
/// exist. After AsyncNodes::shut_down() it can serve another one. A program with two AsyncNodes in one loop
/// makes two EventLoop objects for this loop.
///
/// *In the loop* means: in the thread that runs the loop. The program must use AsyncNodes and its locks in
/// the loop. AsyncLock (async_lock.hpp) lists the functions that any thread may call. While no thread runs
/// the loop, as before its start and after its end, every thread counts as a thread in the loop. Then only
/// one of them at a time may use the library.
///
/// The library collects the commands of all operations that began before a wake(), and sends them to each
/// node in one write. To be fast with many operations, a loop should do three things:
///
/// - If the delay of wake_after() is 0, call wake() in the next iteration, behind all handlers and
///   descriptors that are ready now, and set no timer of the operating system.
/// - In wake_after(), set a timer of the operating system only if it is not set to an earlier instant. The
///   loop may call wake() too early, because wake() then calls wake_after() again.
/// - After ready(), leave the descriptor registered with the operating system, because the library mostly
///   calls watch() again with the same arguments, and watch() has nothing to do then. If the descriptor
///   becomes ready again without a watch() since the last ready(), remove it. Otherwise a connection that the
///   server has closed would be reported for ever.
///
/// The library calls the virtual functions in the loop, and only inside ready(), wake(), and the functions of
/// AsyncNodes, its locks and their terms (AsyncTerm).
class REDLOCK_EXPORT EventLoop : detail::NotCopied {
public:
    /// The part of the library that does the work of ready() and wake(). Programs do not use it.
    class Handler {
    public:
        virtual void on_ready(int fd) = 0;
        virtual void on_wake() = 0;
        /// Returns false in a child of fork(): there, on_ready() and on_wake() do nothing.
        virtual bool in_owning_process() const noexcept = 0;

    protected:
        ~Handler() = default;
    };

    virtual ~EventLoop() = default;

    /// Begins to watch a descriptor. As soon as it is ready, the loop calls ready(fd) once. A second watch()
    /// of the same descriptor replaces the first.
    ///
    ///     argument | the descriptor is ready as soon as it
    ///     ---------+--------------------------------------------------------
    ///     reads    | is readable, is at the end of its data, or has an error
    ///     writes   | is writable, or has an error
    ///
    /// If both arguments are true, the loop calls ready(fd) for the event that comes first, and not for the
    /// other one. If both arguments are false, the loop does not watch the descriptor until the next watch().
    /// A loop with poll() or epoll should remove the descriptor then, because these functions report errors
    /// even of a descriptor for which no event was requested. A descriptor that is not watched must not keep
    /// the loop from ending.
    ///
    /// If the loop cannot watch the descriptor, whatever the reason is, the function must throw
    /// std::bad_alloc. It must throw nothing else. After the exception, an earlier watch of the descriptor
    /// may or may not be active. The library tries again later, or calls forget(). Additional calls of
    /// ready() do no harm.
    virtual void watch(int fd, bool reads, bool writes) = 0;

    /// Stops watching a descriptor that was passed to watch(). The library calls forget() even if watch() has
    /// thrown. The loop must not use the descriptor any more, because the library may close it. The loop
    /// itself must not close it. If the loop has found an event of the descriptor before forget() was called,
    /// it may still call ready() for this event.
    virtual void forget(int fd) noexcept = 0;

    /// Sets the timer of the library. A second wake_after() replaces the first. The library passes only these
    /// delays:
    ///
    ///     delay              | meaning
    ///     -------------------+------------------------------------------------------------------------
    ///     0 to one second    | the loop calls wake() once, after this time and not inside wake_after()
    ///     nanoseconds::max() | the loop need not call wake()
    ///
    /// The loop can measure the time by any steady clock. The function must not fail. If no timer can be
    /// started, the loop must call wake() sooner than requested, such as in its next iteration. Additional
    /// calls of wake() do no harm.
    virtual void wake_after(std::chrono::nanoseconds delay) noexcept = 0;

    /// Sets the handler that ready() and wake() call; null for none. Only AsyncNodes calls this function.
    void set_handler(Handler* handler) noexcept { handler_ = handler; }
    /// Returns true if an AsyncNodes of this process uses the object.
    bool has_handler() const noexcept { return handler_ != nullptr && handler_->in_owning_process(); }

protected:
    // The derived class calls ready() and wake() in the loop. It must not call them while a function of the
    // library is running: not inside watch(), forget() or wake_after(), and not inside a completion
    // (async_lock.hpp). If no AsyncNodes uses the object, they do nothing.
    //
    // Both functions can call completions. If a completion throws, the exception leaves ready() or wake(). No
    // other exception leaves them. The library can still be used, and does the rest of its work in the next
    // call of ready() or wake(). It has called wake_after() for that. If a loop in C has called the derived
    // class, the exception must not reach this loop.

    void ready(int fd) {
        if (handler_ != nullptr) handler_->on_ready(fd);
    }
    void wake() {
        if (handler_ != nullptr) handler_->on_wake();
    }

private:
    Handler* handler_ = nullptr;
};

}  // namespace redlock
