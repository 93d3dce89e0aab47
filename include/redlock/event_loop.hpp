// The interface through which the library uses an event loop of the program, such as that of libuv, Qt or a
// poll() loop. Programs with Asio use `redlock/asio.hpp` in its place.
//
// EventLoop has the functions ready() and wake(), which the loop of the program calls. They do the work of
// the library, such as reading replies and calling completions. A program derives a class from EventLoop and
// implements the three functions that the library calls:
//
//     function           | meaning
//     -------------------+-----------------------------------------------------
//     watch(fd, ...)     | call ready(fd) once, when the descriptor is ready
//     forget(fd)         | do not call ready(fd) any more
//     wake_after(delay)  | call wake() once, after this time
//
// `examples/poll_loop.hpp` is a complete example.
//
// The library starts no thread for a loop, except a short-lived one to resolve a host name or to query
// Sentinels.
#pragma once

#include <redlock/export.hpp>

#include <chrono>

namespace redlock {

/// An event loop of the program, as the library uses it. One object serves one AsyncNodes (async_nodes.hpp).
///
/// *In the loop* means: in the thread that runs the loop, or in any thread while no thread runs the loop, as
/// before its start and after its end. The library calls the virtual functions in the loop. The program must
/// use AsyncNodes and its locks in the loop, too. (AsyncLock lists the exceptions.) If several threads run
/// the loop, only one of them at a time may use the library.
class REDLOCK_EXPORT EventLoop {
public:
    /// The part of the library to which ready() and wake() pass the call. Programs need not use it.
    class Handler {
    public:
        virtual void on_ready(int fd) = 0;
        virtual void on_wake() = 0;

    protected:
        ~Handler() = default;
    };

    EventLoop() = default;
    virtual ~EventLoop() = default;
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    /// Watches a descriptor. A second watch() of the same descriptor replaces the first. May throw
    /// std::bad_alloc.
    ///
    ///     argument | the loop calls ready(fd) once, as soon as the descriptor
    ///     ---------+---------------------------------------------------------
    ///     reads    | is readable, has reached its end, or has an error
    ///     writes   | is writable, or has an error
    ///
    /// If both arguments are true, ready(fd) is called for the event that comes first, and not for the other
    /// one. If both arguments are false, the loop stops watching the descriptor until the next watch(). It
    /// should then remove the descriptor from poll() or epoll, because these report errors even so.
    /// Additional calls of ready() do no harm.
    virtual void watch(int fd, bool reads, bool writes) = 0;

    /// Forgets a descriptor that was passed to watch(). The library may close the descriptor afterwards. The
    /// loop must not close it, and must not use it any more.
    virtual void forget(int fd) noexcept = 0;

    /// Sets the timer of the library. A second wake_after() replaces the first. The library passes no delays
    /// between one second and nanoseconds::max().
    ///
    ///     delay              | meaning
    ///     -------------------+------------------------------------------------------------------------
    ///     0 to one second    | the loop calls wake() once, after this time and not inside wake_after()
    ///     nanoseconds::max() | the loop does not call wake()
    ///
    /// The loop can measure the time by any steady clock. The function must not fail. If no timer can be
    /// started, the loop must call wake() sooner than requested, such as in its next turn. Additional calls
    /// of wake() do no harm.
    virtual void wake_after(std::chrono::nanoseconds delay) noexcept = 0;

    /// Sets the handler that ready() and wake() call; null for none. Only AsyncNodes calls this function.
    void set_handler(Handler* handler) noexcept { handler_ = handler; }

protected:
    // The derived class calls ready() and wake() in the loop, and never inside a function of the library.
    // Both can call completions (async_lock.hpp). If a completion throws, ready() or wake() throws its
    // exception. The library can still be used. It does the rest of the work when the loop calls ready() or
    // wake() next.

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
