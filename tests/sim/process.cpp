#include "process.hpp"

#include <algorithm>

namespace redlock::sim {

thread_local Process* Process::running_ = nullptr;

void Process::spawn(std::function<void()> body, Service service) {
    auto to_its_end = [body = std::move(body)] {
        try {
            body();
        } catch (const Crashed&) {  // ends the fiber
        }
    };
    tasks_.push_back(std::make_unique<Task>(std::move(to_its_end), service));
    wake(*tasks_.back());
}

bool Process::busy() const noexcept {
    return std::ranges::any_of(
        tasks_, [](const auto& task) { return task->service_ == Service::user && !task->fiber_.over(); });
}

void Process::pause_for(nanoseconds span) {
    if (!alive_) return;
    const auto now = timeline_.now();
    if (clock_stops_ && now >= paused_until_) clock_.stop(now);
    paused_until_ = std::max(paused_until_, now + span);
    stalled_until_ = std::max(stalled_until_, paused_until_);
    log_.note(name_, [&] { return "is paused for " + text(span); });
    if (clock_stops_) timeline_.at(paused_until_, [this] { clock_goes_on(); });
}

void Process::clock_goes_on() noexcept {
    if (timeline_.now() >= paused_until_) clock_.go_on(timeline_.now());
}

void Process::crash() {
    if (!alive_) return;
    alive_ = false;
    log_.note(name_, [] { return "crashes"; });
    if (on_crash_) on_crash_();
    for (const auto& task : tasks_)
        if (task.get() != current_) wake(*task);
}

void Process::fault_point() noexcept {
    if (!current_ || no_faults_ || !alive_) return;
    if (rng_.chance(hazards_.crash)) return crash();
    if (rng_.chance(hazards_.pause)) {
        pause_for(rng_.about(hazards_.longest_pause / 3));
        stay_paused_until(paused_until_);
    } else if (rng_.chance(hazards_.stall)) {
        const auto until = timeline_.now() + rng_.about(hazards_.longest_pause / 3);
        stalled_until_ = std::max(stalled_until_, until);
        log_.note(name_, [&] { return "has a thread that stalls for " + text(until - timeline_.now()); });
        stay_paused_until(until);
    }
}

/// Blocks without an exception if the process crashes, because code that reads a clock expects none.
void Process::stay_paused_until(Instant until) noexcept {
    while (alive_ && timeline_.now() < until) park_until(until);
}

void Process::wait_until(Clock::time_point until) {
    check_alive();
    park_until(until == Clock::never() ? Instant::max() : when(until));
    check_alive();
}

void Process::park_until(Instant until) {
    Task& task = *current_;
    task.parked_ = true;
    const auto turn = ++task.turn_;
    if (until != Instant::max()) timeline_.at(until, [this, &task, turn] { run(task, turn); });
    Fiber::suspend();
}

void Process::wake(Task& task) {
    if (task.parked_ && !task.fiber_.over())
        timeline_.at(timeline_.now(), [this, &task, turn = task.turn_] { run(task, turn); });
}

void Process::run(Task& task, std::uint64_t turn) {
    if (turn != task.turn_ || !task.parked_ || task.fiber_.over()) return;
    if (alive_ && timeline_.now() < paused_until_) {
        timeline_.at(paused_until_, [this, &task, turn] { run(task, turn); });
        return;
    }
    run(task);
}

void Process::run(Task& task) {
    clock_goes_on();
    task.parked_ = false;
    current_ = &task;
    running_ = this;
    task.fiber_.resume();
    running_ = nullptr;
    current_ = nullptr;
}

/// Runs all fibers to their ends. A fiber may have to wait for another one while it unwinds. If nobody ends
/// its wait for a condition, which is a violation, this function does.
void Process::end() {
    alive_ = false;
    const auto over = [](const auto& task) { return task->fiber_.over(); };
    constexpr int most_passes = 10'000;
    for (int passes = 0; !std::ranges::all_of(tasks_, over); ends_all_waits_ = ++passes > most_passes)
        for (std::size_t i = 0; i < tasks_.size(); ++i)
            if (!over(tasks_[i])) run(*tasks_[i]);
}

}  // namespace redlock::sim
