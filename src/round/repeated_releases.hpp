// The releases of one node that are sent again, because their connection broke after their rounds were over.
// The node may not have received them, and nobody else repeats them.
#pragma once

#include "pending_replies.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace redlock::detail {

/// The largest number of releases that are sent again together. If there are more, the oldest ones are
/// dropped, and their keys stay until their ttl ends.
inline constexpr std::size_t max_repeated_releases = 2048;
/// The largest number of broken connections whose releases are kept apart from those of the others.
inline constexpr std::size_t max_broken_connections = 64;

class RepeatedReleases {
public:
    RepeatedReleases() { broken_.reserve(max_broken_connections); }

    bool none() const noexcept { return broken_.empty(); }

    /// Keeps the releases to repeat of a broken connection. `was_ready` is true if the server has answered on
    /// it, unless the last answer was that it executes no commands now (BUSY or LOADING).
    void keep(PendingReplies pending, bool was_ready) noexcept {
        if (pending.releases_to_repeat() == 0) return;
        if (broken_.size() >= max_broken_connections) {
            if (add_to_last(pending, was_ready)) return;
            broken_.erase(broken_.begin());
        }
        broken_.push_back({std::move(pending), was_ready});
    }

    /// Returns true if a connection may be made in order to send the releases: if the server `answers` now,
    /// or if a connection broke on which it had answered. A server that has ended thus gets one attempt,
    /// whose connection is not answered, and the next one when it answers again.
    bool may_connect(bool answers) const noexcept {
        return answers || std::ranges::any_of(broken_, &Broken::was_ready);
    }

    /// Lets may_connect() return true until the next connection breaks.
    void permit_attempt() noexcept {
        for (auto& it : broken_) it.was_ready = true;
    }

    /// Calls `send` with each release to send, the oldest first.
    template <class Send>
    void for_each(Send send) const {
        std::size_t count = 0;
        for (const auto& it : broken_) count += it.pending.releases_to_repeat();
        auto dropped = count - std::min(count, max_repeated_releases);
        for (const auto& it : broken_)
            it.pending.for_each_release_to_repeat([&](const PendingReply& release) {
                if (dropped > 0)
                    --dropped;
                else
                    send(release);
            });
    }

    /// Must be called when all releases were sent.
    void clear() noexcept { broken_.clear(); }

private:
    /// What a broken connection has left behind.
    struct Broken {
        PendingReplies pending;
        bool was_ready;
    };

    /// Adds the releases to those of the last connection. Returns false if there are too many, or no memory.
    bool add_to_last(const PendingReplies& pending, bool was_ready) noexcept {
        auto& last = broken_.back();
        if (last.pending.releases_to_repeat() >= max_repeated_releases) return false;
        try {
            pending.for_each_release_to_repeat([&](const PendingReply& release) {
                last.pending.sent_again(release).repeats = release.repeats;
            });
        } catch (const std::bad_alloc&) {  // to send a release twice does no harm
            return false;
        }
        last.was_ready = last.was_ready || was_ready;
        return true;
    }

    std::vector<Broken> broken_{};
};

}  // namespace redlock::detail
