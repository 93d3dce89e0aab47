// The releases of one node that are sent again, because their connection broke after their rounds were over.
// The node may not have received them, and nobody else repeats them.
#pragma once

#include <redlock/detail/pending_replies.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace redlock::detail {

/// The largest number of releases that are sent again together, and of the broken connections that had them.
/// If there are more, the oldest ones are dropped, and their keys stay until their ttl ends.
inline constexpr std::size_t max_repeated_releases = 2048;
inline constexpr std::size_t max_broken_connections = 64;

class RepeatedReleases {
public:
    RepeatedReleases() { broken_.reserve(max_broken_connections); }

    bool none() const noexcept { return broken_.empty(); }

    /// Keeps the releases to repeat of a broken connection. `was_ready` is true if the server has answered on
    /// it, unless the last answer was that it executes no commands now (BUSY or LOADING).
    void keep(PendingReplies pending, bool was_ready) noexcept {
        if (pending.releases_to_repeat() == 0) return;
        if (broken_.size() >= max_broken_connections) broken_.erase(broken_.begin());
        broken_.push_back({std::move(pending), was_ready});
    }

    /// Returns true if a connection may be made in order to send the releases: if the node is trusted, or if
    /// a connection broke on which the server had answered. A server that has ended thus gets one attempt,
    /// whose connection is not answered, and the next one when the node is trusted again.
    bool may_connect(bool trusted) const noexcept {
        return trusted || std::ranges::any_of(broken_, &Broken::was_ready);
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
    std::vector<Broken> broken_{};
};

}  // namespace redlock::detail
