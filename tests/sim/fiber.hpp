// A thread of a simulated process. It has a stack of its own, and the scheduler decides when it continues.
// Real code that blocks can run in it unchanged.
//
// Exceptions in flight belong to the fiber, although the runtime keeps them for each thread.
#pragma once

#include <redlock/detail/not_copied.hpp>

#include <exception>
#include <functional>
#include <memory>

namespace redlock::sim {

class Fiber : detail::NotCopied {
public:
    explicit Fiber(std::function<void()> body);
    /// Requires over(), because nothing else destroys the objects on its stack.
    ~Fiber();

    /// Continues the fiber until it is suspended or over. Rethrows the exception that left its body.
    void resume();

    /// Returns to the caller of resume(). The running fiber calls this.
    static void suspend();

    bool over() const noexcept { return over_; }

private:
    struct Context;
    static void enter();
    void run();

    std::function<void()> body_;
    std::unique_ptr<Context> context_;
    std::exception_ptr failure_{};
    bool over_ = false;
};

}  // namespace redlock::sim
