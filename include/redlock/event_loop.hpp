// The interface through which the library uses an event loop of the program, such as that of libuv, Qt or a
// poll() loop. Programs with Asio use `redlock/asio.hpp` in its place.
//
// A program derives a class from EventLoop and implements the three functions that the library calls:
//
//     function           | meaning
//     -------------------+-----------------------------------------------------
//     watch(fd, ...)     | call ready(fd) once, when the descriptor is ready
//     forget(fd)         | do not call ready(fd) any more
//     wake_after(delay)  | call wake() once, after this time
//
// EventLoop itself has ready() and wake(), which the loop of the program calls. They do the work of the
// library, such as reading replies and calling completions. `examples/poll_loop.hpp` is a complete example.
//
// The library starts no thread for a loop, except a short-lived one to resolve a host name or to query
// Sentinels.
#pragma once

#include <redlock/export.hpp>

#include <chrono>

namespace redlock {

/// An event loop of the program, as the library uses it. One object serves one AsyncNodes (async_nodes.hpp).
///
/// The library calls the virtual functions *in the loop*: in the thread that runs the loop, or before the
/// loop runs. The program must use AsyncNodes and its locks in the loop, too. If several threads run the
/// loop, only one of them at a time may use the library.
class REDLOCK_EXPORT EventLoop {
public:
    /// The part of the library that does the work. AsyncNodes implements it, and programs need not use it.
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

    /// Watches a descriptor: calls ready(fd) once, as soon as the descriptor is readable (if `reads`) or
    /// writable (if `writes`), has an error, or has reached its end. If both arguments are false, the loop
    /// does not call ready(), not even for an error. A second watch() of the same descriptor replaces the
    /// first. Superfluous calls of ready() do no harm. May throw std::bad_alloc.
    virtual void watch(int fd, bool reads, bool writes) = 0;

    /// Forgets a descriptor that was passed to watch(): the loop does not call ready() for it any more, and
    /// must not close it.
    virtual void forget(int fd) noexcept = 0;

    /// Sets the timer of the library: calls wake() once, after `delay`, and never inside this function. A
    /// second wake_after() replaces the first. `delay` is one of these:
    ///
    /// - From 0 to one second. With 0, calls wake() soon. The loop can measure the time by any steady clock.
    /// - nanoseconds::max(). Cancels the timer, so that wake() is not called.
    ///
    /// The function must not fail. If no timer can be started, the loop must call wake() sooner than
    /// requested, such as in its next turn. Superfluous calls of wake() do no harm.
    virtual void wake_after(std::chrono::nanoseconds delay) noexcept = 0;

    /// Sets the part of the library that ready() and wake() call; null for none. Only AsyncNodes calls this
    /// function.
    void set_handler(Handler* handler) noexcept { handler_ = handler; }

protected:
    // The loop of the derived class calls ready() and wake(), and never inside a function of the library.
    // Both can call functions of the program, such as completions. If such a function throws, ready() or
    // wake() throws its exception. The library can still be used, and does the rest of the work at the next
    // call.

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
