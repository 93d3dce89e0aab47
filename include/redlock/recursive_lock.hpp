// A Lock that the thread which holds it may acquire again: for porting code that counts on it.
//
//     redlock::RecursiveLock lock{nodes, "orders:42"};
//     const std::lock_guard outer{lock};       // a round
//     {
//         const std::lock_guard inner{lock};   // counts, without I/O
//     }
//
// Rarely wise: a caller that acquires what it holds already has lost track of how long the lock still lasts,
// and the inner level gets what is left of the outer one's validity, however short. A function that takes
// `Lock&` as proof that the caller holds it is the better design.
//
// What belongs to a thread here is the holding, not the object: it may be shared, and while one thread holds
// it every verb of another is refused with std::errc::operation_not_permitted, also when that thread has
// ended without releasing it.
#pragma once

#include <redlock/error.hpp>
#include <redlock/export.hpp>
#include <redlock/lock.hpp>
#include <redlock/process.hpp>
#include <redlock/result.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace redlock {

class REDLOCK_EXPORT RecursiveLock {
public:
    /// As Lock.
    RecursiveLock(Nodes& nodes, ResourceList resources, LockOptions options = {}, Clock& clock = boot_clock(),
                  Entropy& entropy = os_entropy())
        : lock_(nodes, std::move(resources), std::move(options), clock, entropy) {}
    RecursiveLock(const RecursiveLock&) = delete;
    RecursiveLock& operator=(const RecursiveLock&) = delete;

    // ---- Questions, as those of Lock, for the thread that holds it.

    bool valid() const noexcept { return is_mine() && lock_.valid(); }
    std::chrono::nanoseconds remaining() const noexcept {
        return is_mine() ? lock_.remaining() : std::chrono::nanoseconds::zero();
    }
    std::stop_token lost() const { return is_mine() ? lock_.lost() : std::stop_token{}; }
    std::string_view owner() const noexcept { return is_mine() ? lock_.owner() : std::string_view{}; }
    const std::string& resource() const noexcept { return lock_.resource(); }

    /// How often this thread has acquired it without releasing it.
    int level() const noexcept { return is_mine() ? level_ : 0; }

    // ---- Verbs, as those of Lock. An inner level succeeds at once while the lock is valid, and is `lost`
    // when it is not: then release every level, and begin anew.

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

    /// Extends all levels: there is one lease.
    Result extend() { return is_mine() ? lock_.extend() : not_mine(); }

    /// Lets go of one level; with the outermost, of the lock on all nodes.
    Result release() noexcept {
        return leave([this] { return lock_.release(); });
    }

    // ---- The std vocabulary.

    /// As Lock::lock(); throws Error also when another thread holds this object, or an inner level finds the
    /// lock lost.
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

    bool is_mine() const noexcept { return holder_.load() == this_thread(); }

    template <class Release>
    Result leave(Release release) noexcept {
        if (!is_mine()) return not_mine();
        if (--level_ > 0) return inner();
        auto result = release();
        holder_.store(no_thread);
        return result;
    }

    Result not_mine() const noexcept {
        const bool held = holder_.load() != no_thread;
        return held ? Result{std::make_error_code(std::errc::operation_not_permitted)}
                    : Result{Errc::not_held};
    }

    /// What a level says that needed no round.
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
        auto free = no_thread;
        if (!holder_.compare_exchange_strong(free, this_thread())) return not_mine();
        OwnerGuard guard{*this};
        auto result = acquire();
        if (result) guard.keep();
        return result;
    }

    /// Gives the object back to all threads, unless the lock was acquired.
    class OwnerGuard {
    public:
        explicit OwnerGuard(RecursiveLock& lock) : lock_(&lock) {}
        ~OwnerGuard() {
            if (lock_) lock_->holder_.store(no_thread);
        }
        OwnerGuard(const OwnerGuard&) = delete;
        OwnerGuard& operator=(const OwnerGuard&) = delete;
        void keep() noexcept { std::exchange(lock_, nullptr)->level_ = 1; }

    private:
        RecursiveLock* lock_;
    };

    std::atomic<std::uint64_t> holder_{no_thread};  // the thread that holds it, or is about to
    Lock lock_;                                     // touched by the holder alone
    int level_ = 0;                                 // so is this
};

}  // namespace redlock
