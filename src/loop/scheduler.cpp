#include "loop/scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace redlock::loop {

// ---- Task

Task::Task(Scheduler& scheduler) : scheduler_(scheduler), link_{this} {
    Timers node;
    node.emplace(Clock::never(), this);
    timer_ = node.extract(node.begin());
}

Task::~Task() {
    cancel_timer();
    if (queued_) link_.splice(link_.end(), scheduler_.queue_, node_);
}

void Task::wake() noexcept {
    cancel_timer();
    if (queued_) return;
    queued_ = true;
    scheduler_.queue_.splice(scheduler_.queue_.end(), link_, node_);
    scheduler_.set_wake_up();
}

void Task::wake_at(Clock::time_point instant) noexcept {
    if (queued_) return;
    cancel_timer();
    if (instant == Clock::never()) return;
    timer_.key() = instant;
    timer_at_ = scheduler_.timers_.insert(std::move(timer_));
    scheduler_.set_wake_up();
}

void Task::cancel_timer() noexcept {
    if (timer_.empty()) timer_ = scheduler_.timers_.extract(timer_at_);
}

// ---- Scheduler

void Scheduler::run() {
    if (std::exchange(running_, true)) return;
    struct End {
        Scheduler& it;
        ~End() {
            it.running_ = false;
            it.set_wake_up();
        }
    };
    const End end{*this};
    const auto now = clock_.now();
    while (!timers_.empty() && timers_.begin()->first <= now) timers_.begin()->second->wake();
    for (auto left = queue_.size(); left > 0 && !queue_.empty(); --left) {
        auto& task = *queue_.front();
        task.link_.splice(task.link_.end(), queue_, task.node_);
        task.queued_ = false;
        task.proceed();
    }
}

/// Has the loop call EventLoop::wake() when the next task is due. A wake-up that comes too early stays,
/// unless there is nothing to do at all. Otherwise the timer would change with each round. The naps last a
/// second at most, because the clock of the loop may stand still while the machine is suspended.
void Scheduler::set_wake_up() noexcept {
    using namespace std::chrono_literals;
    if (loop_ == nullptr || running_) return;
    if (queue_.empty() && timers_.empty()) {
        if (std::exchange(wakes_at_, Clock::never()) != Clock::never())
            loop_->wake_after(std::chrono::nanoseconds::max());
        return;
    }
    const auto next = queue_.empty() ? timers_.begin()->first : Clock::time_point::min();
    if (wakes_at_ <= next) return;
    const auto now = clock_.now();
    wakes_at_ = std::clamp<Clock::time_point>(next, now, now + 1s);
    loop_->wake_after(wakes_at_ - now);
}

void Scheduler::detach() noexcept {
    if (loop_ == nullptr) return;
    loop_->wake_after(std::chrono::nanoseconds::max());
    loop_ = nullptr;
}

}  // namespace redlock::loop
