// The nodes that refuse to keep a queue of waiters, as one waiter has to know them.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/nodes.hpp>

#include "listener.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

namespace redlock {

class QueueRefusals {
public:
    /// `pools` must outlive the object.
    explicit QueueRefusals(ListenerPools pools) : pools_(pools) {}

    /// Returns true if the node keeps no queue for this resource, although it may keep queues for others.
    bool concern(std::size_t node, Clock::time_point now) const noexcept {
        return now < refused_[node].until;
    }

    /// Records that a node keeps no queue: for this resource if the queue's key holds something else,
    /// otherwise for this client.
    void add(std::size_t node, detail::NodeFailure why, Clock::time_point now) {
        QueueRefusal refusal{std::move(why), now + queue_refusal_duration};
        if (refusal.why.cause == Errc::wrong_type)
            refused_[node] = std::move(refusal);
        else
            pools_[node]->refused_to_queue(std::move(refusal));
    }

    /// See Waiter::report_refusals().
    void report(Tally& tally, Clock::time_point now) const {
        for (std::size_t node = 0; node < pools_.size(); ++node) {
            const auto why =
                concern(node, now) ? std::optional{refused_[node].why} : pools_[node]->queue_refusal(now);
            if (!why) continue;
            tally.mark_not_sent(node, why->cause);
            tally[node].detail = why->detail;
        }
    }

private:
    const ListenerPools pools_;
    // The nodes on which the queue's key of this resource holds something else.
    std::array<QueueRefusal, max_nodes> refused_{};
};

}  // namespace redlock
