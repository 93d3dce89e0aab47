// A lock that the thread which holds it may acquire again, for code that relies on this.
//
//     redlock::RecursiveLock lock{nodes, "orders:42"};
//     const std::lock_guard outer{lock};       // a round
//     {
//         const std::lock_guard inner{lock};   // counts, without I/O
//     }
//
// New code should avoid it, because the inner level gets only the remaining validity of the outer one. A
// function that takes a `Lock&` as proof that the caller holds the lock is the better design.
//
// All threads may share the object. While one thread holds the lock, all operations of other threads fail
// with std::errc::operation_not_permitted, even if the holding thread has ended without a release.
#pragma once

#include <redlock/error.hpp>
#include <redlock/export.hpp>
#include <redlock/lock.hpp>
#include <redlock/process.hpp>
#include <redlock/result.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace redlock {

/// A Lock with levels: acquire() by the holding thread only counts, and the last release() releases.
class REDLOCK_EXPORT RecursiveLock {
public:
    /// Prepares a lock, as the constructor of Lock does.
    RecursiveLock(Nodes& nodes, ResourceList resources, LockOptions options = {}, Clock& clock = boot_clock(),
                  Entropy& entropy = os_entropy())
        : lock_(nodes, std::move(resources), std::move(options), clock, entropy) {}
    RecursiveLock(const RecursiveLock&) = delete;
    RecursiveLock& operator=(const RecursiveLock&) = delete;

    // ---- Queries, as those of Lock. To a thread that does not hold the lock it looks free.

    bool valid() const noexcept { return is_mine() && lock_.valid(); }
    std::chrono::nanoseconds remaining() const noexcept {
        return is_mine() ? lock_.remaining() : std::chrono::nanoseconds::zero();
    }
    std::stop_token lost() const { return is_mine() ? lock_.lost() : std::stop_token{}; }
    std::string_view owner() const noexcept { return is_mine() ? lock_.owner() : std::string_view{}; }
    std::uint64_t fencing_token() const noexcept { return is_mine() ? lock_.fencing_token() : 0; }
    const std::string& resource() const noexcept { return lock_.resource(); }

    /// Returns how often this thread has acquired the lock without releasing it.
    int level() const noexcept { return is_mine() ? level_ : 0; }

    // ---- Operations, as those of Lock. On an inner level, acquire() and release() do no I/O. Such an
    // acquisition is successful while the lock is valid, and otherwise returns `lost`. After `lost`, release
    // all levels and begin again.

    Result acquire(std::stop_token stop = {}) {
        return enter([&] { return lock_.acquire(std::move(stop)); });
    }
    Result try_acquire() {
        return enter([&] { return lock_.try_acquire(); });
    }
    template <class Rep, class Period>
    Result acquire_for(std::chrono::duration<Rep, Period> span, std::stop_token stop = {}) {
        return enter([&] { return lock_.acquire_for(span, std::move(stop)); });
    }
    template <class TheirClock, class Duration>
    Result acquire_until(std::chrono::time_point<TheirClock, Duration> until, std::stop_token stop = {}) {
        return enter([&] { return lock_.acquire_until(until, std::move(stop)); });
    }

    /// Extends the lock on all levels, because there is only one lease.
    Result extend() {
        if (is_mine()) return lock_.extend();
        return is_here(holder_.load()) ? refused() : Result{Errc::not_held};
    }

    /// Releases one level. For the outermost level, releases the lock as Lock::release() does. Afterwards the
    /// object is free for all threads. If the result is `no_quorum`, release() can be repeated until another
    /// acquisition.
    Result release() noexcept {
        return leave([this] { return lock_.release(); });
    }

    // ---- The interface of std::timed_mutex, as that of Lock.

    /// Acquires as Lock::lock() does. Also throws Error if another thread holds the lock, or if the lock was
    /// lost when the thread acquires an inner level.
    void lock();
    bool try_lock() { return static_cast<bool>(try_acquire()); }
    template <class Rep, class Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> span) {
        return static_cast<bool>(span > span.zero() ? acquire_for(span) : try_acquire());
    }
    template <class TheirClock, class Duration>
    bool try_lock_until(std::chrono::time_point<TheirClock, Duration> until) {
        return static_cast<bool>(enter([&] {
            return lock_.try_lock_until(until) ? Result{std::error_code{}} : Result{Errc::held_by_other};
        }));
    }
    void unlock() noexcept {
        (void)leave([this] {
            lock_.unlock();
            return Result{std::error_code{}};
        });
    }

private:
    static constexpr std::uint64_t no_thread = 0;
    static constexpr int bits_of_thread = 40;

    /// Returns a number of the calling thread that differs between a process and the children of fork().
    static std::uint64_t caller() noexcept {
        return (static_cast<std::uint64_t>(this_process()) << bits_of_thread) + this_thread();
    }
    bool is_mine() const noexcept { return holder_.load() == caller(); }
    /// Returns true if `holder` is a thread of this process. In the child of a fork() the lock is free, as a
    /// Lock is.
    static bool is_here(std::uint64_t holder) noexcept {
        return holder >> bits_of_thread == static_cast<std::uint64_t>(this_process());
    }

    template <class Release>
    Result leave(Release release) noexcept {
        if (is_mine()) {
            if (--level_ > 0) return inner();
        } else if (!claim()) {  // an earlier release may be repeated, see release()
            return refused();
        }
        auto result = release();
        holder_.store(no_thread);
        return result;
    }

    /// Makes the calling thread the holder. Returns false if another thread is the holder.
    bool claim() noexcept {
        auto holder = holder_.load();
        return !is_here(holder) && holder_.compare_exchange_strong(holder, caller());
    }

    /// Returns the result of an operation while another thread is the holder.
    static Result refused() noexcept {
        return Result{std::make_error_code(std::errc::operation_not_permitted)};
    }

    /// Returns the result of an operation on an inner level.
    Result inner() const noexcept {
        if (!lock_.valid()) return Result{Errc::lost};
        return Result{std::error_code{}, Tally{}, 0, lock_.remaining()};
    }

    template <class Acquire>
    Result enter(Acquire acquire) {
        if (is_mine()) {
            auto result = inner();
            if (result) ++level_;
            return result;
        }
        if (!claim()) return refused();
        const auto make_free = [](RecursiveLock* lock) { lock->holder_.store(no_thread); };
        std::unique_ptr<RecursiveLock, decltype(+make_free)> unless_acquired{this, make_free};
        auto result = acquire();
        if (result) unless_acquired.release()->level_ = 1;
        return result;
    }

    std::atomic<std::uint64_t> holder_{no_thread};  // the thread that holds, acquires or releases the lock
    Lock lock_;                                     // used only by this thread
    int level_ = 0;                                 // used only by this thread
};

}  // namespace redlock
