// The releases of one node that are to be sent again. A RedisNodes has several Node objects for each node:
// one for rounds with connections of their own, one for the threads that share connections, and one for each
// event loop. Each of them may send what the others have left behind.
#pragma once

#include <redlock/detail/pending_replies.hpp>
#include <redlock/detail/repeated_releases.hpp>

#include <atomic>
#include <mutex>
#include <utility>

namespace redlock {

/// Any thread may call the functions.
class KeptReleases {
public:
    /// See RepeatedReleases::keep().
    void keep(detail::PendingReplies pending, bool was_ready) noexcept {
        const std::lock_guard guard{mutex_};
        releases_.keep(std::move(pending), was_ready);
        any_ = !releases_.none();
    }

    /// Moves all releases to `to`, which has none, if RepeatedReleases::may_connect().
    void move_to(detail::RepeatedReleases& to, bool trusted) noexcept {
        if (!any_) return;  // costs no lock in each round
        const std::lock_guard guard{mutex_};
        if (!releases_.may_connect(trusted)) return;
        std::swap(releases_, to);
        any_ = false;
    }

    /// Lets a node that is not trusted have one attempt, because no round may come any more.
    void permit_attempt() noexcept {
        const std::lock_guard guard{mutex_};
        releases_.permit_attempt();
    }

private:
    std::mutex mutex_{};
    detail::RepeatedReleases releases_{};  // guarded by mutex_
    std::atomic<bool> any_{false};         // written under mutex_
};

}  // namespace redlock
