// The releases of one server that are to be sent again. A RedisNodes has several Node objects for it: one in
// each group (node_group.hpp). Each of them may send what the others have left behind.
//
// A release must arrive, or its keys stay until their ttl ends. Before it is sent, it belongs to the round or
// the operation that sends it (docs/architecture.md, "The life of a release"). From then on until its reply,
// it is in one of these places:
//
//     place                          | what happens there → what follows, or the next place
//     -------------------------------+-----------------------------------------------------------------------
//     PendingReplies of a connection,| answered, or refused for good → done
//     its round awaits the reply     | refused in this form → written again by its round
//                                    | a Redis Cluster names another server → sent there by its round, or, if
//                                    | that cannot follow, as if it were late
//                                    | refused for now, or with READONLY → here, for a pause (after NOREPLICAS
//                                    | or READONLY of a server that Sentinels name, its round sends it once
//                                    | more as well)
//                                    | on a connection that breaks → sent once more by its round
//                                    | left by its round, which is over → late
//     PendingReplies of a connection,| answered, or refused for good → done
//     late                           | refused in this form → written again on this connection
//                                    | refused for now, or with READONLY → here, for a pause
//                                    | a Redis Cluster names another server → the KeptReleases of that
//                                    | server; dropped if it has named too many servers
//                                    | on a connection that breaks, or that its group closes → here
//                                    | on a silent one (Link::check_silence(), or Link::leave_forgotten() at
//                                    | the end) → here, if it was not sent again before, and its SET is not
//                                    | pending there
//                                    | on a draining one that was never ready, after a minute, or as soon as
//                                    | it hangs (Connection::hangs()) → here (at the end after a second, also
//                                    | on a current one)
//                                    | on one of too many draining connections, or on a ready one that has
//                                    | drained for a minute and for the ttl of each SET on it → dropped
//     here                           | sent again, by the next Node object that calls Node::sweep() → late (if
//                                    | it was refused with TRYAGAIN, as a release for each of its resources)
//                                    | its server serves no hash slot of the Cluster any more → the
//                                    | KeptReleases of the server that serves the hash slot now
//                                    | one of too many, sent too often, or no memory for it → dropped
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/memory.hpp>

#include "pending_replies.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace redlock {

/// The largest number of releases of one server that are sent again together. If there are more, the oldest
/// ones are dropped, and their keys stay until their ttl ends.
inline constexpr std::size_t max_kept_releases = 2048;

/// Any thread may call the functions.
class KeptReleases {
public:
    KeptReleases() { of_connections_.reserve(64); }  // so those of 64 connections need no memory

    /// Keeps the releases of a connection that are to be repeated. `may_try_at_once` is true if the server is
    /// not to blame for the end of the connection: it has answered on it, this client had a shortage, or
    /// another server is to get them. It is also true if the connection is silent, because another one may
    /// reach the server.
    ///
    /// If the server has refused a release for now, on a connection that is in order, no release of the
    /// server is sent again before `not_before`, because the server would probably refuse it again.
    void keep(detail::PendingReplies pending, bool may_try_at_once,
              Clock::time_point not_before = {}) noexcept {
        if (pending.releases_to_repeat() == 0) return;
        const std::lock_guard guard{mutex_};
        not_before_ = std::max(not_before_, not_before);
        if (!detail::has_memory_for([&] { of_connections_.push_back(std::move(pending)); })) return;
        if (of_connections_.size() > max_kept_releases) of_connections_.erase(of_connections_.begin());
        any_ = true;
        may_try_at_once_ = may_try_at_once_ || may_try_at_once;
    }

    bool none() const noexcept { return !any_; }

    /// Returns false before `not_before` of keep(). Returns false, too, if the server does not answer now (is
    /// not trusted), unless one of the releases was kept with `may_try_at_once`. So a server that has ended
    /// gets one attempt, and the next one when it answers again, or after permit_attempt().
    bool may_send(bool answers, Clock::time_point now) const noexcept {
        const std::lock_guard guard{mutex_};
        return may_send_locked(answers, now);
    }

    /// Calls `send` with each of the newest max_kept_releases, the oldest of them first, and then forgets
    /// all. Does nothing unless may_send(). `send` must not call any function of this object. If it throws,
    /// all releases are kept.
    template <class Send>
    void send_again(bool answers, Clock::time_point now, Send send) {
        const std::lock_guard guard{mutex_};
        if (!may_send_locked(answers, now)) return;
        std::size_t count = 0;
        for (const auto& it : of_connections_) count += it.releases_to_repeat();
        auto dropped = count - std::min(count, max_kept_releases);
        for (const auto& it : of_connections_)
            it.for_each_release_to_repeat([&](const detail::PendingReply& release) {
                if (dropped > 0)
                    --dropped;
                else
                    send(release);
            });
        of_connections_.clear();
        any_ = may_try_at_once_ = false;
    }

    /// Lets a server that does not answer have one attempt, because no round may come that asks it.
    void permit_attempt() noexcept {
        const std::lock_guard guard{mutex_};
        not_before_ = {};
        may_try_at_once_ = any_;
    }

private:
    bool may_send_locked(bool answers, Clock::time_point now) const noexcept {
        return any_ && now >= not_before_ && (answers || may_try_at_once_);
    }

    mutable std::mutex mutex_{};
    // Guarded by mutex_.
    std::vector<detail::PendingReplies> of_connections_{};
    bool may_try_at_once_ = false;
    Clock::time_point not_before_{};
    // Written under mutex_.
    std::atomic<bool> any_{false};
};

}  // namespace redlock
