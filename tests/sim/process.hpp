// A process of a client: a boot clock of its own, one or several fibers (its threads), and the faults of
// processes. All its fibers share them: when it is paused, none of them runs; when it crashes, all end.
#pragma once

#include "drifting_clock.hpp"
#include "fiber.hpp"
#include "log.hpp"
#include "mutex_bypass.hpp"
#include "rng.hpp"
#include "timeline.hpp"

#include <redlock/clock.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::sim {

/// Faults of a process wherever it reads its clock or uses the network.
struct Hazards {
    double pause = 0;  ///< how often it is paused there
    nanoseconds longest_pause{};
    double stall = 0;  ///< how often one of its fibers is, alone: a thread without a processor
    double crash = 0;  ///< how often it ends there
};

/// Whose work a fiber does: a process is finished when its user fibers are.
enum class Service : bool { user, background };

/// One fiber of a process, and whether it waits.
class Task {
public:
    Task(std::function<void()> body, Service service) : fiber_(std::move(body)), service_(service) {}

private:
    friend class Process;
    Fiber fiber_;
    Service service_;
    bool ignores_crash_ = false;
    std::uint64_t turn_ = 0;  // a timer of an earlier turn has no effect
    bool parked_ = true;
};

class Process {
public:
    /// Thrown by every wait once the process has crashed. Code that it unwinds may wait again, and
    /// gets it again: nothing is sent by a dead process.
    struct Crashed {};

    Process(Timeline& timeline, Log& log, Rng rng, std::string name, DriftingClock clock)
        : timeline_(timeline), log_(log), rng_(rng), name_(std::move(name)), clock_(clock) {}
    ~Process() { end(); }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    const std::string& name() const noexcept { return name_; }
    Timeline& timeline() noexcept { return timeline_; }
    Log& log() noexcept { return log_; }

    // ---- Faults.

    /// A fiber that begins now.
    void spawn(std::function<void()> body, Service service = Service::user);
    void meet(Hazards hazards) noexcept { hazards_ = hazards; }
    /// A collection of garbage, a debugger, SIGSTOP, a machine that sleeps: its clock goes on, its fibers do
    /// not.
    void pause_for(nanoseconds span);
    /// Somebody sets the wall clock of its machine, which is no concern of a boot clock.
    void wall_clock_is_set(nanoseconds by) noexcept {
        if (tells_wall_time_) clock_.step(timeline_.now(), by);
    }
    void crash();
    void on_crash(std::function<void()> action) { on_crash_ = std::move(action); }
    bool alive() const noexcept { return alive_; }
    /// Whether some fiber of it cannot go on. At the instant in which a pause ends none has gone on yet.
    bool paused() const noexcept { return stalled_until_ > Instant{} && timeline_.now() <= stalled_until_; }
    /// None of its fibers runs.
    bool is_paused() const noexcept { return timeline_.now() < paused_until_; }
    /// Whether some fiber of it could not go on at `when`, or later.
    bool was_paused_since(Instant when) const noexcept { return stalled_until_ >= when; }
    bool tells_wall_time() const noexcept { return tells_wall_time_; }
    /// Whether some fiber that works for the user still has something to do.
    bool busy() const noexcept;
    /// All its fibers end; nothing more is sent.
    void end();

    /// A clock like CLOCK_MONOTONIC, which stops in every pause: unsafe, see presets.cpp.
    void stop_clock_in_pauses() noexcept { clock_stops_ = true; }

    /// A clock like CLOCK_REALTIME: unsafe as well.
    void tell_wall_time() noexcept { tells_wall_time_ = true; }

    // ---- For its own fibers.

    /// Its clock, read without a fault point.
    Clock::time_point now() const noexcept { return Clock::time_point{clock_.read(timeline_.now())}; }
    /// True time of one of its own instants.
    Instant when(Clock::time_point at) const noexcept { return clock_.when(at.time_since_epoch()); }

    /// A place where it may be paused, or crash. A crash shows at the next wait.
    void fault_point() noexcept;
    /// Until its clock shows `until`, or until it is woken.
    void wait_until(Clock::time_point until);
    void check_alive() const {
        if (!alive_ && !(current_ && current_->ignores_crash_)) throw Crashed{};
    }
    Task* current() noexcept { return current_; }
    /// Whether the fiber that runs does not work for the user.
    bool in_background() const noexcept { return current_ && current_->service_ == Service::background; }
    void wake(Task& task);

    /// The one whose fiber runs in this thread of the simulation; null outside of fibers.
    static Process* running() noexcept { return running_; }
    /// Until it is woken, also in a process that has crashed.
    void wait() noexcept { park_until(Instant::max()); }

    /// For a function that must not throw, and whose wait is going to end by itself: a crash does not end it.
    class IgnoreCrash {
    public:
        explicit IgnoreCrash(Process& process)
            : task_(*process.current_), before_(std::exchange(task_.ignores_crash_, true)) {}
        ~IgnoreCrash() { task_.ignores_crash_ = before_; }
        IgnoreCrash(const IgnoreCrash&) = delete;
        IgnoreCrash& operator=(const IgnoreCrash&) = delete;

    private:
        Task& task_;
        bool before_;
    };

    /// Without fault points, and without waiting for mutexes: for the checker.
    class NoFaults {
    public:
        explicit NoFaults(Process& process)
            : process_(process), before_(std::exchange(process.no_faults_, true)) {}
        ~NoFaults() { process_.no_faults_ = before_; }
        NoFaults(const NoFaults&) = delete;
        NoFaults& operator=(const NoFaults&) = delete;

    private:
        MutexBypass bypass_{};
        Process& process_;
        bool before_;
    };

private:
    static thread_local Process* running_;

    void run(Task& task);
    void run(Task& task, std::uint64_t turn);
    void park_until(Instant until);
    void clock_goes_on() noexcept;
    void stay_paused_until(Instant until) noexcept;

    Timeline& timeline_;
    Log& log_;
    Rng rng_;
    std::string name_;
    DriftingClock clock_;
    Hazards hazards_{};
    std::function<void()> on_crash_{};
    std::vector<std::unique_ptr<Task>> tasks_{};
    Task* current_ = nullptr;
    Instant paused_until_{};
    Instant stalled_until_{};  // some fiber, if not all
    bool alive_ = true;
    bool no_faults_ = false;
    bool clock_stops_ = false;
    bool tells_wall_time_ = false;
};

/// How long something takes, by the clock of its process.
class Stopwatch {
public:
    explicit Stopwatch(Process& process)
        : process_(process), since_(process.timeline().now()), began_(process.now()) {}

    Clock::time_point began() const noexcept { return began_; }
    nanoseconds elapsed() const noexcept { return process_.now() - began_; }
    /// Whether it is at most `span` so far. It cannot be said, and is true, where the process was paused.
    bool within(nanoseconds span) const noexcept {
        const bool comparable = process_.alive() && !process_.was_paused_since(since_);
        return !comparable || process_.tells_wall_time() || elapsed() <= span + 1ms;
    }

private:
    Process& process_;
    Instant since_;
    Clock::time_point began_;
};

/// redlock::Clock as this process has it.
class SimClock final : public Clock {
public:
    explicit SimClock(Process& process) : process_(process) {}

    time_point now() noexcept override {
        process_.fault_point();
        const auto result = process_.now();
        process_.fault_point();
        return result;
    }

    void sleep_until(time_point until, std::stop_token stop) override {
        Task& sleeper = *process_.current();
        const std::stop_callback alarm{stop, [&] { process_.wake(sleeper); }};
        process_.check_alive();
        while (process_.now() < until && !stop.stop_requested()) process_.wait_until(until);
    }

private:
    Process& process_;
};

}  // namespace redlock::sim
