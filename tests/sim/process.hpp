// A process of a client: a boot clock of its own, one or several fibers (its threads), and the faults of
// processes. The fibers share these faults. When the process is paused, none of them runs. When it crashes,
// all of them end.
#pragma once

#include "drifting_clock.hpp"
#include "fiber.hpp"
#include "log.hpp"
#include "mutex_bypass.hpp"
#include "rng.hpp"
#include "timeline.hpp"

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::sim {

/// The faults of a process. Each can occur wherever the process reads its clock or uses the network.
struct Hazards {
    double pause = 0;  ///< the probability that the process is paused
    nanoseconds longest_pause{};
    double stall = 0;  ///< the probability that only the current fiber is paused
    double crash = 0;  ///< the probability that the process crashes
};

/// What a fiber is for. A process is finished when its user fibers are.
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

class Process : detail::NotCopied {
public:
    /// Thrown by every wait after the process has crashed. Destructors that run during the unwinding may wait
    /// again, and then it is thrown again. A dead process sends nothing.
    struct Crashed {};

    Process(Timeline& timeline, Log& log, Rng rng, std::string name, DriftingClock clock)
        : timeline_(timeline), log_(log), rng_(rng), name_(std::move(name)), clock_(clock) {}
    ~Process() { end(); }

    const std::string& name() const noexcept { return name_; }
    Timeline& timeline() noexcept { return timeline_; }
    Log& log() noexcept { return log_; }

    // ---- Faults.

    /// Starts a fiber now.
    void spawn(std::function<void()> body, Service service = Service::user);
    void meet(Hazards hazards) noexcept { hazards_ = hazards; }
    /// Pauses the process like a garbage collection, a debugger, SIGSTOP, or a machine that sleeps. Its clock
    /// continues, but its fibers do not.
    void pause_for(nanoseconds span);
    /// The wall clock of its machine is set. This does not affect a boot clock.
    void wall_clock_is_set(nanoseconds by) noexcept {
        if (tells_wall_time_) clock_.step(timeline_.now(), by);
    }
    void crash();
    void on_crash(std::function<void()> action) { on_crash_ = std::move(action); }
    bool alive() const noexcept { return alive_; }
    /// Returns true if some fiber is suspended by a fault. At the instant at which a pause ends, no fiber has
    /// continued yet.
    bool paused() const noexcept { return stalled_until_ > Instant{} && timeline_.now() <= stalled_until_; }
    /// Returns true if some fiber was suspended by a fault at `when` or later.
    bool was_paused_since(Instant when) const noexcept { return stalled_until_ >= when; }
    bool tells_wall_time() const noexcept { return tells_wall_time_; }
    /// Returns true if some user fiber has not ended.
    bool busy() const noexcept;
    /// Ends all its fibers. Nothing more is sent.
    void end();
    /// Returns true if waits for conditions must end, because no other fiber will end them.
    bool ends_all_waits() const noexcept { return ends_all_waits_; }

    /// Makes its clock behave like CLOCK_MONOTONIC, which stops in every pause. This is unsafe, see
    /// presets.cpp.
    void stop_clock_in_pauses() noexcept { clock_stops_ = true; }

    /// Makes its clock behave like CLOCK_REALTIME. This is unsafe as well.
    void tell_wall_time() noexcept { tells_wall_time_ = true; }

    // ---- Called by its own fibers.

    /// Reads its clock without a fault point.
    Clock::time_point now() const noexcept { return Clock::time_point{clock_.read(timeline_.now())}; }
    /// Converts an instant of its clock to true time.
    Instant when(Clock::time_point at) const noexcept { return clock_.when(at.time_since_epoch()); }

    /// A place where the process may be paused or crash. A crash becomes visible at the next wait.
    void fault_point() noexcept;
    /// Blocks until its clock shows `until`, or until the fiber is woken.
    void wait_until(Clock::time_point until);
    void check_alive() const {
        if (!alive_ && !(current_ && current_->ignores_crash_)) throw Crashed{};
    }
    Task* current() noexcept { return current_; }
    void wake(Task& task);

    /// The process whose fiber runs in this thread of the simulation, or null outside of fibers.
    static Process* running() noexcept { return running_; }
    /// Blocks until the fiber is woken or the instant has come, even if the process has crashed.
    void wait(Instant until = Instant::max()) noexcept { park_until(until); }

    /// Makes waits of the current fiber ignore a crash. For a function that must not throw, and whose wait
    /// ends by itself.
    class IgnoreCrash : detail::NotCopied {
    public:
        explicit IgnoreCrash(Process& process)
            : task_(*process.current_), before_(std::exchange(task_.ignores_crash_, true)) {}
        ~IgnoreCrash() { task_.ignores_crash_ = before_; }

    private:
        Task& task_;
        bool before_;
    };

    /// Disables fault points and waits for mutexes. For the checker.
    class NoFaults : detail::NotCopied {
    public:
        explicit NoFaults(Process& process)
            : process_(process), before_(std::exchange(process.no_faults_, true)) {}
        ~NoFaults() { process_.no_faults_ = before_; }

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
    Instant stalled_until_{};  // of one fiber or of all
    bool alive_ = true;
    bool ends_all_waits_ = false;
    bool no_faults_ = false;
    bool clock_stops_ = false;
    bool tells_wall_time_ = false;
};

/// Measures a duration by the clock of a process.
class Stopwatch {
public:
    explicit Stopwatch(Process& process)
        : process_(process), since_(process.timeline().now()), began_(process.now()) {}

    Clock::time_point began() const noexcept { return began_; }
    nanoseconds elapsed() const noexcept { return process_.now() - began_; }
    /// Returns true if at most `span` has elapsed so far. If the process was paused meanwhile, the comparison
    /// has no meaning, and the result is true.
    bool within(nanoseconds span) const noexcept {
        const bool comparable = process_.alive() && !process_.was_paused_since(since_);
        return !comparable || process_.tells_wall_time() || elapsed() <= span + 1ms;
    }

private:
    Process& process_;
    Instant since_;
    Clock::time_point began_;
};

/// The redlock::Clock of a process.
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
