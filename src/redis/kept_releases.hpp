// The releases of one node that are to be sent again. A RedisNodes has several Node objects for each node:
// one in each lane of its threads, and one for each event loop. Each of them may send what the others have
// left behind.
//
// A release must arrive, or its keys stay until their ttl ends. From its sending until its reply, it is in
// one of these places:
//
//     place                          | it leaves the place, and is
//     -------------------------------+-----------------------------------------------------------------------
//     PendingReplies of a connection,| answered, or refused for good → done
//     its round awaits the reply     | refused in this form → written again on this connection
//                                    | on a connection that breaks → sent once more by its round
//                                    | left by its round, which is over → late
//     PendingReplies of a connection,| answered → done
//     late                           | refused for now → here, for a pause
//                                    | on a connection that breaks → here
//                                    | on one on which nothing comes for a node_timeout → here, if it was
//                                    | not sent again before, and its SET is not pending there
//                                    | on one of too many draining connections, or on one that has drained
//                                    | for as long as its keys live → given up
//     here                           | sent again, on the next connection of any Node object → late
//                                    | one of too many, or sent too often → given up
#pragma once

#include <redlock/clock.hpp>

#include "../round/pending_replies.hpp"
#include "../round/repeated_releases.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

namespace redlock {

/// Any thread may call the functions.
class KeptReleases {
public:
    /// See RepeatedReleases::keep().
    void keep(detail::PendingReplies pending, bool was_ready) noexcept {
        if (pending.releases_to_repeat() == 0) return;
        const std::lock_guard guard{mutex_};
        releases_.keep(std::move(pending), was_ready);
        any_ = true;
        ++changes_;
    }

    /// Keeps a release that the server has refused for now, on a connection that is in order. The releases of
    /// the node are not sent again before `until`, because the server would probably refuse them again.
    void keep_refused(detail::PendingReplies release, Clock::time_point until) noexcept {
        {
            const std::lock_guard guard{mutex_};
            not_before_ = until;
        }
        keep(std::move(release), false);
    }

    /// Returns a number that is larger after each call of keep() that has kept something. If it has not
    /// changed since the server has answered, the server should answer the kept releases, too.
    std::uint64_t changes() const noexcept { return changes_; }

    bool none() const noexcept { return !any_; }
    /// Calls `send` with all releases, and then forgets them, if RepeatedReleases::may_connect().
    template <class Send>
    void send_again(bool answers, Clock::time_point now, Send send) {
        const std::lock_guard guard{mutex_};
        if (now < not_before_ || !releases_.may_connect(answers)) return;
        send(std::as_const(releases_));
        releases_.clear();
        any_ = false;
    }

    /// Lets a node that is not trusted have one attempt, because no round may come any more.
    void permit_attempt() noexcept {
        const std::lock_guard guard{mutex_};
        not_before_ = {};
        releases_.permit_attempt();
    }

private:
    std::mutex mutex_{};
    detail::RepeatedReleases releases_{};  // guarded by mutex_
    Clock::time_point not_before_{};       // guarded by mutex_
    // Written under mutex_.
    std::atomic<bool> any_{false};
    std::atomic<std::uint64_t> changes_{0};
};

}  // namespace redlock
