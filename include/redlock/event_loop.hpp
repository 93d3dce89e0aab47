// The interface through which the library uses an event loop of the program, such as that of libuv, Qt or a
// poll() loop. (For Asio, use `redlock/asio.hpp`, which implements it.) A program derives a class from
// EventLoop and implements three functions. Through watch(), the library requests one call of ready() when a
// descriptor is ready. Through wake_after(), it requests one call of wake() after some time. forget() cancels
// a watch(). `examples/poll_loop.hpp` is a complete example, in 50 lines.
//
// The library starts no thread for a loop, except a short-lived one to resolve a host name or to query
// Sentinels.
#pragma once

#include <redlock/export.hpp>

#include <chrono>

namespace redlock {

/// What the library needs of an event loop. One object serves one AsyncNodes (async_nodes.hpp).
///
/// The library calls the virtual functions *in the loop*: in the thread that runs the loop, or before the
/// loop runs. The program must use AsyncNodes and its locks in the loop, too. If several threads run the
/// loop, only one of them at a time may use the library.
class REDLOCK_EXPORT EventLoop {
public:
    /// The object that ready() and wake() call. AsyncNodes implements it.
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
    /// writable (if `writes`), has an error, or has reached its end. A second watch() of the same descriptor
    /// replaces the first. If both arguments are false, ready() is not called. Superfluous calls of ready()
    /// do no harm. May throw std::bad_alloc.
    virtual void watch(int fd, bool reads, bool writes) = 0;

    /// Forgets a descriptor that was passed to watch(): the loop does not call ready() for it any more, and
    /// must not close it.
    virtual void forget(int fd) noexcept = 0;

    /// With nanoseconds::max(), cancels the wake() that was requested before. Otherwise calls wake() once,
    /// after `delay`, which is from 0 to one second by any steady clock. With 0, calls it soon, but not
    /// inside this call. A second wake_after() replaces the first. If the timer cannot be started, the loop
    /// must call wake() too early instead. Superfluous calls of wake() do no harm.
    virtual void wake_after(std::chrono::nanoseconds delay) noexcept = 0;

    /// Sets the object that ready() and wake() call; null for none. AsyncNodes calls this function.
    void set_handler(Handler* handler) noexcept { handler_ = handler; }

protected:
    // A derived class calls these two from its loop, and never inside a function of the library. Both call
    // functions of the user, whose exceptions leave ready() or wake(). The library goes on at the next call.

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
