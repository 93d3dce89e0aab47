// Runs the tasks of one event loop. A task is an operation, a batch of extensions, or a background task. It
// has no thread and never blocks: it does what it can do at once, says what it waits for, and is called
// again.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/event_loop.hpp>

#include <list>
#include <map>

namespace redlock::loop {

class Scheduler;

/// A part of the work in a loop. The destructor cancels everything that the task waits for. Only the
/// constructor allocates memory.
class Task {
public:
    explicit Task(Scheduler& scheduler);
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

    /// Is called by the scheduler after wake() or at the instant of wake_at(). May destroy any task, this one
    /// included. An exception leaves Scheduler::run().
    virtual void proceed() = 0;

    /// Has proceed() called soon, and not inside this call.
    void wake() noexcept;
    /// Has proceed() called at `instant`, unless another wake() or wake_at() comes before. Clock::never()
    /// cancels an earlier wake_at().
    void wake_at(Clock::time_point instant) noexcept;

    /// Returns the present instant of the scheduler's clock.
    Clock::time_point now() const noexcept;

protected:
    virtual ~Task();

    Scheduler& scheduler() const noexcept { return scheduler_; }

private:
    friend class Scheduler;
    using Timers = std::multimap<Clock::time_point, Task*>;

    void cancel_timer() noexcept;

    Scheduler& scheduler_;
    std::list<Task*> link_;  // has the node of this task, unless the task is queued
    const std::list<Task*>::iterator node_ = link_.begin();
    bool queued_ = false;
    Timers::node_type timer_{};  // the node of this task, unless the timer is set
    Timers::iterator timer_at_{};
};

class Scheduler {
public:
    Scheduler(EventLoop& loop, Clock& clock) : loop_(&loop), clock_(clock) {}
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    Clock& clock() const noexcept { return clock_; }

    /// Calls the tasks that are woken or due, each once. A task that is woken meanwhile is called by the next
    /// run(), so that the loop can do other work in between. If a task throws, the others are called by the
    /// next run().
    void run();

    /// Is called when the loop has called EventLoop::wake(), before run().
    void woken() noexcept { wakes_at_ = Clock::never(); }

    /// Ends the use of the loop. Tasks are not called any more.
    void detach() noexcept;

private:
    friend class Task;

    void set_wake_up() noexcept;

    EventLoop* loop_;  // null once detached
    Clock& clock_;
    std::list<Task*> queue_{};
    Task::Timers timers_{};
    Clock::time_point wakes_at_ = Clock::never();  // when the loop calls EventLoop::wake()
    bool running_ = false;
};

inline Clock::time_point Task::now() const noexcept {
    return scheduler_.clock().now();
}

}  // namespace redlock::loop
