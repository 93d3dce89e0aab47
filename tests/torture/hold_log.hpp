// The holds of every worker, in memory that the checker shares: a file, which outlives a worker that is
// killed during a hold.
//
// A hold begins when acquire() has succeeded. It ends when the release begins, when on_lost is called, or
// when the validity ends, whichever comes first. In between valid() is true, also while the worker is stopped
// and after it was killed. No other worker may hold the same resource then. All instants are those of the
// boot clock in nanoseconds, which all processes of a machine share.
#pragma once

#include <redlock/detail/not_copied.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace redlock::torture {

using Instant = std::int64_t;

Instant now();

/// The kind of locks that a worker uses.
enum class Mode : std::int64_t { plain, fenced, several, watched, fair, shared, semaphore, leader, loop };
/// The modes in the order in which processes get them. More than three workers compete for the semaphore of
/// three slots. Locks in an event loop have a mode of their own.
inline constexpr std::array modes{Mode::plain,  Mode::fenced,    Mode::several, Mode::watched,  Mode::fair,
                                  Mode::shared, Mode::semaphore, Mode::leader,  Mode::semaphore};

struct Hold {
    Instant from = 0;
    Instant valid_until = 0;
    Instant released_at = 0;      ///< 0: never
    Instant notified_at = 0;      ///< of the loss; 0: never
    std::uint64_t resources = 0;  ///< one bit each
    std::uint64_t fencing_token = 0;
    std::size_t worker = 0;
    Mode mode = Mode::plain;

    Instant until() const {
        auto end = valid_until;
        // A leader remains the leader after stop was requested.
        for (const auto at : {released_at, mode == Mode::leader ? 0 : notified_at})
            if (at != 0) end = std::min(end, at);
        return end;
    }
};

/// When a worker process did not run, because it was stopped by SIGSTOP or because the machine was busy. It
/// does late what was due meanwhile.
struct Suspension {
    std::size_t process;
    Instant from;
    Instant until;
};

/// The suspensions that a process has noticed itself. Only one of its threads writes.
class SuspensionLog {
public:
    void add(Instant from, Instant until) {
        const auto at = cell(count_).load();
        if (at == static_cast<std::int64_t>(all_.size())) return;
        all_[static_cast<std::size_t>(at)] = {from, until};
        cell(count_).store(at + 1);
    }
    void read_into(std::vector<Suspension>& result, std::size_t process) {
        const auto count = static_cast<std::size_t>(cell(count_).load());
        for (std::size_t i = 0; i < count; ++i) result.push_back({process, all_[i].from, all_[i].until});
    }

private:
    struct Span {
        Instant from;
        Instant until;
    };
    static std::atomic_ref<std::int64_t> cell(std::int64_t& value) { return std::atomic_ref{value}; }

    std::int64_t count_;
    std::array<Span, 10'000> all_;
};

/// The log of one worker.
class WorkerLog {
public:
    static constexpr std::size_t max_holds = 100'000;

    // ---- For the worker, including its watchdog.
    void begin(const Hold& hold) {
        holds_.at(static_cast<std::size_t>(count())) = hold;
        cell(count_).fetch_add(1, std::memory_order_release);
    }
    void set_valid_until(Instant until) { cell(last().valid_until).store(until, std::memory_order_relaxed); }
    void released(Instant at) { cell(last().released_at).store(at, std::memory_order_relaxed); }
    void notified(Instant at) { cell(last().notified_at).store(at, std::memory_order_relaxed); }
    void count_attempt() { cell(attempts_).fetch_add(1, std::memory_order_relaxed); }
    bool full() { return count() >= static_cast<std::int64_t>(max_holds); }
    void set_mode(Mode mode) { cell(mode_).store(static_cast<std::int64_t>(mode)); }

    // ---- For the checker.
    Mode mode() { return static_cast<Mode>(cell(mode_).load()); }
    std::int64_t count() { return cell(count_).load(std::memory_order_acquire); }
    std::int64_t attempts() { return cell(attempts_).load(std::memory_order_relaxed); }
    void read_into(std::vector<Hold>& all, std::size_t worker);

private:
    // An empty log is all zero, so the memory of a new file needs no constructor.
    static std::atomic_ref<std::int64_t> cell(std::int64_t& value) { return std::atomic_ref{value}; }
    Hold& last() { return holds_.at(static_cast<std::size_t>(count() - 1)); }

    std::int64_t mode_;
    std::int64_t attempts_;
    std::int64_t count_;
    std::array<Hold, max_holds> holds_;
};

class HoldLog : detail::NotCopied {
public:
    /// Four processes, of different modes, have five workers on the same nodes: the main thread, further
    /// threads, which then share connections, and an event loop. All other processes have one worker.
    static constexpr std::size_t processes = 3 * modes.size();
    static constexpr std::size_t further_threads = 3;
    static constexpr std::size_t workers = processes + (further_threads + 1) * modes.size();
    static constexpr bool has_companions(std::size_t process) {
        return process < modes.size() && process % 2 == 1;
    }
    /// Returns the index of a further worker of the process. The event loop is behind the further threads.
    static constexpr std::size_t companion(std::size_t process, std::size_t number) {
        return processes + number * modes.size() + process;
    }
    static constexpr std::size_t process_of(std::size_t worker) {
        return worker < processes ? worker : (worker - processes) % modes.size();
    }

    /// Maps the file, and creates it if it does not exist.
    explicit HoldLog(const std::filesystem::path& path);
    ~HoldLog();

    WorkerLog& of(std::size_t worker) { return shared_->logs.at(worker); }
    SuspensionLog& suspensions_of(std::size_t process) { return shared_->suspensions.at(process); }
    /// From now on all workers hold only briefly, so that each gets its turn soon.
    void hurry() { std::atomic_ref{shared_->hurried}.store(1); }
    bool hurried() { return std::atomic_ref{shared_->hurried}.load() != 0; }
    void stop() { std::atomic_ref{shared_->stopped}.store(1); }
    bool stopped() { return std::atomic_ref{shared_->stopped}.load() != 0; }

    std::vector<Hold> holds();
    std::vector<Suspension> suspensions();
    std::int64_t count();
    std::int64_t attempts();

private:
    struct Shared {
        std::int64_t hurried;
        std::int64_t stopped;
        std::array<WorkerLog, workers> logs;
        std::array<SuspensionLog, processes> suspensions;
    };
    Shared* shared_;
};

}  // namespace redlock::torture
