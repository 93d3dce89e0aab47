// The interface through which the library uses an event loop of the program, such as that of libuv, Qt or a
// poll() loop. For Asio, `redlock/asio.hpp` implements it. Others derive a class from EventLoop, and
// implement three functions: watch() requests one call of ready(), forget() takes this request back, and
// wake_after() requests one call of wake(). `examples/poll_loop.hpp` is a complete one, in 50 lines.
//
// The library starts no thread for a loop. There is one exception: a short-lived thread that resolves a host
// name or queries Sentinels. When it ends, it makes a descriptor readable that the loop watches.
#pragma once

#include <redlock/export.hpp>

#include <chrono>

namespace redlock {

/// What the library needs of an event loop. One object serves one AsyncNodes (async_nodes.hpp). The library
/// calls the virtual functions *in the loop*: in the thread that runs the loop. Before the loop runs, this is
/// the thread that will run it. If several threads run the loop, no two of them may use the library for this
/// loop at the same time.
class REDLOCK_EXPORT EventLoop {
public:
    /// What the loop calls through ready() and wake(). AsyncNodes implements it.
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
    /// writable (if `writes`), has an error, or has reached its end. After that call the loop does not watch
    /// the descriptor any more. A second watch() of the same descriptor replaces the first. If both
    /// arguments are false, the loop stops watching it. Calls of ready() in vain do no harm. May throw
    /// std::bad_alloc.
    virtual void watch(int fd, bool reads, bool writes) = 0;

    /// Forgets a descriptor that was passed to watch(), because the library is about to close it. The loop
    /// must not close it, and does not call ready() for it any more.
    virtual void forget(int fd) noexcept = 0;

    /// Calls wake() once, after `delay`, which may be counted by any steady clock. The delay is at most one
    /// second, with one exception below. A delay of 0 means soon, but not inside this call. A second
    /// wake_after() replaces the first. Calls of wake() that come too early do no harm. If the timer cannot
    /// be started, the loop must call wake() early, because without this call operations may never end.
    ///
    /// The value nanoseconds::max() means that no wake() is needed: it cancels the wake() that was requested
    /// before. The library has nothing to do then at any known instant. A loop that ends when nothing is left
    /// to do can end.
    virtual void wake_after(std::chrono::nanoseconds delay) noexcept = 0;

    /// Sets the object that ready() and wake() call; null for none. Is called by AsyncNodes.
    void set_handler(Handler* handler) noexcept { handler_ = handler; }

protected:
    // A derived class calls these two from its loop, and never inside a function of the library. If the
    // completion of an operation (async_lock.hpp) throws an exception, they throw it, too, and the library
    // goes on working at the next call. Exceptions of LockOptions::on_lost are swallowed.

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
