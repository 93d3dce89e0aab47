// Runs the tasks of one event loop, for example that of a lock or of the watchdog. A task has no thread
// and never blocks. If a task has to wait, it names the event or the instant, returns, and is called again.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/linked_list.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/event_loop.hpp>
#include <redlock/process.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

namespace redlock::loop {

class Scheduler;

/// A part of the work in a loop. The destructor cancels everything that the task waits for. Only the
/// constructor allocates memory.
class Task : public detail::Linked<Task> {
public:
    explicit Task(Scheduler& scheduler);

    /// Is called by the scheduler after wake() or at the instant of wake_at(). May destroy any task, this one
    /// included. An exception leaves Scheduler::run().
    virtual void proceed() = 0;

    /// Has proceed() called soon, and not inside this call.
    void wake() noexcept;
    /// Has proceed() called at `instant`, unless another wake() or wake_at() comes before. Clock::never()
    /// cancels an earlier wake_at().
    void wake_at(Clock::time_point instant) noexcept;
    /// Has proceed() called at `instant` at the latest. If the instant of the last wake_at() comes first,
    /// that wake_at() stays.
    void wake_by(Clock::time_point instant) noexcept;

    /// Returns the present instant of the scheduler's clock.
    Clock::time_point now() const noexcept;

protected:
    virtual ~Task();

private:
    friend class Scheduler;
    using Timers = std::multimap<Clock::time_point, Task*>;

    void cancel_timer() noexcept;

    Scheduler& scheduler_;
    Timers::node_type timer_{};  // the map element of this task, unless the timer is set
    Timers::iterator timer_at_{};
};

class Scheduler : detail::NotCopied {
public:
    Scheduler(EventLoop& loop, Clock& clock) : loop_(&loop), clock_(clock) {}

    Clock& clock() const noexcept { return clock_; }

    /// Calls the tasks that are woken or due, each once. A task that is woken meanwhile is called by the next
    /// run() at the earliest, so that the loop can do other work in between. If a task throws, the others are
    /// called by the next run().
    void run();

    /// Is called when the loop has called EventLoop::wake(), before run().
    void woken() noexcept { wakes_at_ = Clock::never(); }

    /// Sets a task that run() calls behind all others, so that it ends the pass of the loop; null for none.
    void set_end_of_pass(Task* task) noexcept { last_ = task; }

    /// Ends the use of the loop. Tasks are not called any more.
    void detach() noexcept;

private:
    friend class Task;
    using Tasks = detail::LinkedList<Task>;

    void set_wake_up() noexcept;
    /// A task may detach the scheduler, or return in a child of fork(), which leaves the rest to its parent.
    bool may_go_on() const noexcept { return loop_ != nullptr && process_ == this_process(); }

    const std::int64_t process_ = this_process();
    EventLoop* loop_;  // null once detached
    Clock& clock_;
    Tasks queue_{};
    Task::Timers timers_{};
    Task* last_ = nullptr;
    Clock::time_point wakes_at_ = Clock::never();  // when the loop calls EventLoop::wake()
    bool running_ = false;
};

// ---- Task

inline Task::Task(Scheduler& scheduler) : scheduler_(scheduler) {
    Timers node;
    node.emplace(Clock::never(), this);
    timer_ = node.extract(node.begin());
}

inline Task::~Task() {
    cancel_timer();
}

inline void Task::wake() noexcept {
    cancel_timer();
    if (Scheduler::Tasks::has(*this)) return;
    scheduler_.queue_.add(*this);
    scheduler_.set_wake_up();
}

inline void Task::wake_at(Clock::time_point instant) noexcept {
    if (Scheduler::Tasks::has(*this)) return;
    cancel_timer();
    if (instant != Clock::never()) {
        timer_.key() = instant;
        timer_at_ = scheduler_.timers_.insert(std::move(timer_));
    }
    scheduler_.set_wake_up();
}

inline void Task::wake_by(Clock::time_point instant) noexcept {
    if (!timer_.empty() || instant < timer_at_->first) wake_at(instant);
}

inline void Task::cancel_timer() noexcept {
    if (timer_.empty()) timer_ = scheduler_.timers_.extract(timer_at_);
}

inline Clock::time_point Task::now() const noexcept {
    return scheduler_.clock().now();
}

// ---- Scheduler

inline void Scheduler::run() {
    if (std::exchange(running_, true)) return;
    struct Pass {
        Scheduler& it;
        Tasks tasks{};
        ~Pass() {  // The tasks that were not called are the first of the next pass.
            tasks.add_all(it.queue_);
            it.queue_.add_all(tasks);
            it.running_ = false;
            it.set_wake_up();
        }
    };
    Pass pass{*this};
    const auto now = clock_.now();
    while (!timers_.empty() && timers_.begin()->first <= now) timers_.begin()->second->wake();
    pass.tasks.add_all(queue_);
    while (may_go_on() && !pass.tasks.empty()) {
        auto& task = *pass.tasks.take();
        if (&task == last_)
            queue_.add(task);
        else
            task.proceed();
    }
    if (!may_go_on() || last_ == nullptr || !Tasks::has(*last_)) return;
    Tasks::remove(*last_);
    last_->proceed();
}

/// Has the loop call EventLoop::wake() when the next task is due. An earlier wake-up is not moved, so that
/// the timer need not be set in each round. It is cancelled if no task waits. The loop is woken after a
/// second at the latest, because its clock may stand still while the machine is suspended.
inline void Scheduler::set_wake_up() noexcept {
    using namespace std::chrono_literals;
    if (running_ || !may_go_on()) return;
    if (queue_.empty() && timers_.empty()) {
        if (std::exchange(wakes_at_, Clock::never()) != Clock::never())
            loop_->wake_after(std::chrono::nanoseconds::max());
        return;
    }
    const auto next = queue_.empty() ? timers_.begin()->first : Clock::time_point::min();
    if (wakes_at_ <= next) return;
    const auto now = clock_.now();
    wakes_at_ = next <= now ? Clock::time_point::min() : std::min<Clock::time_point>(next, now + 1s);
    loop_->wake_after(std::max<Clock::time_point>(wakes_at_, now) - now);
}

inline void Scheduler::detach() noexcept {
    if (loop_ == nullptr) return;
    loop_->wake_after(std::chrono::nanoseconds::max());
    loop_ = nullptr;
}

}  // namespace redlock::loop
