// A real redlock::Lock or AsyncLock in a simulated process. The checker sees each call and its result.
#pragma once

#include "checker.hpp"
#include "client.hpp"
#include "sim_loop.hpp"

#include <redlock/lock.hpp>

#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

namespace redlock::sim {

class CheckedLock : detail::NotCopied {
public:
    CheckedLock(Client& client, std::vector<std::string> resources, LockOptions options = {});
    CheckedLock(Client& client, std::string resource, LockOptions options = {})
        : CheckedLock(client, std::vector{std::move(resource)}, options) {}
    /// Releases what is held, as the destructor of the real lock does.
    ~CheckedLock();

    // ---- The verbs of the lock.
    Result acquire(std::stop_token stop = {});
    Result try_acquire();
    Result acquire_for(nanoseconds span);
    Result extend() { return extend(options_.ttl); }
    Result extend(milliseconds ttl);
    Result release();
    void unlock();

    // ---- The queries of the lock. The process may be paused right before it reads its clock, or right
    // after.
    bool valid() const { return lock_.valid(); }
    nanoseconds remaining() const { return lock_.remaining(); }
    std::uint64_t fencing_token() const { return lock_.fencing_token(); }
    const OfClient<Lock, AsyncLock>& lock() const noexcept { return lock_; }

    // ---- For the checker.
    /// Returns whether valid() is true now, after comparing that with the state before.
    bool check_valid();
    bool overlaps(const CheckedLock& other) const;
    std::string name() const { return client_.name(); }
    std::vector<std::string> resources() const {
        return {lock_.resources().begin(), lock_.resources().end()};
    }

private:
    LockOptions observed(LockOptions options);
    bool watched() const noexcept { return options_.watchdog != nullptr; }
    template <class Verb>
    Result acquire_by(Verb verb, nanoseconds longest, bool queues);
    template <class Verb>
    auto in_time(nanoseconds longest, Verb verb);
    bool queues(int attempts) const noexcept;
    nanoseconds longest_attempts(int attempts) const;
    nanoseconds longest_release() const;
    void acquired(const Result& result);
    Result extend_watched(milliseconds ttl);
    std::size_t shutdowns() const noexcept { return loop_ ? loop_->shutdowns() : 0; }
    bool was_destroyed(const Result& extension, const std::string& owner, std::size_t shutdowns_before);
    void expect_lost_for_good(const Result& result, Clock::time_point valid_until);
    template <class Verb>
    void give_back(Verb verb);
    void note_shutdown();
    void ended(std::string owner);
    void notified(const Result& loss);
    bool was_notified() const { return !notified_.empty() && notified_ == lock_.owner(); }
    void check_watch(bool valid, bool open);
    bool notice_is_due() const;
    void check_extension(Clock::time_point until);
    Clock::time_point valid_until() const;
    Instant seen_until(Clock::time_point until) const { return client_.process().when(until); }

    Client& client_;
    SimLoop* const loop_;  // null if the client does not use event loops
    Checker& checker_;
    nanoseconds max_hold_;
    LockOptions options_;

    // About the acquisition that is held or was held last.
    bool held_ = false;
    std::string owner_{};
    bool lapsed_ = false;
    bool extending_ = false;
    bool releasing_ = false;
    bool acquiring_ = false;  // acquire() first releases what has lapsed
    std::size_t hold_ = 0;

    // The same, if the lock is watched.
    Clock::time_point since_{};
    Clock::time_point until_{};  // at the last check
    milliseconds longest_ttl_{};
    bool extended_by_hand_ = false;
    bool extended_by_watchdog_ = false;
    std::string notified_{};  // the owner of the last acquisition that was reported lost
    std::string over_{};      // the owner of the last released acquisition

    OfClient<Lock, AsyncLock> lock_;  // destroyed first, because a loss may be reported until then
};

}  // namespace redlock::sim
