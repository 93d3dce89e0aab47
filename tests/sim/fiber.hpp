// A thread of a simulated process: a stack of its own, and the scheduler decides when it goes on. Real code
// that blocks can run in it unchanged.
//
// Exceptions in flight belong to the fiber, though the runtime keeps them per thread.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace redlock::sim {

class Fiber {
public:
    explicit Fiber(std::function<void()> body);
    /// It must be over: nothing else destroys what lives on its stack.
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Goes on with it until it is suspended or over. Throws what it threw.
    void resume();

    /// Called by the fiber that runs: back to its resumer.
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
