// The connections on which *waiters* (waiting.hpp) receive the message that wakes them. A listener is
// subscribed to a channel of its own, and serves one waiter after another, each with a new ticket.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>

#include "../round/node_health.hpp"
#include "connection.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock {

class Listener {
public:
    /// Takes over a connection, which may still be connecting. The name of the channel is random.
    Listener(std::unique_ptr<Connection> connection, Entropy& entropy);

    Connection& connection() noexcept { return *connection_; }

    /// Returns true if the server has confirmed the subscription and the connection is not broken. The answer
    /// to SUBSCRIBE is never taken, and Connection::take_reply() keeps messages elsewhere.
    bool listens() const noexcept { return connection_->ready() && connection_->pending().answer(); }

    /// Connects, subscribes and reads as far as the socket allows without blocking.
    void advance();

    /// Reads the messages that have arrived, but no more than a limit, and calls `is_expected` with each.
    /// Messages that wake a waiter mostly come alone. If a message is not expected, other clients publish on
    /// the channel. Nothing is then read for 10 ms, because a flood of messages would keep the processor
    /// busy.
    template <class IsExpected>
    void read(Clock::time_point now, IsExpected is_expected) {
        constexpr int most_reads = 16;  // of 16 KiB each
        if (now < next_read_) return;
        for (int reads = 0; reads < most_reads; ++reads) {
            advance();
            bool expected = true;
            for (const auto& message : connection_->take_messages())
                expected = is_expected(message) && expected;
            if (expected) return;
            next_read_ = now + std::chrono::milliseconds{10};
        }
    }
    /// Returns the instant before which read() does nothing.
    Clock::time_point next_read() const noexcept { return next_read_; }

    /// Returns a ticket that no waiter has ever had: the name of the channel, '|' and a number.
    std::string new_ticket() { return channel_ + '|' + std::to_string(++tickets_); }

    /// Returns true if new_ticket() has returned this text. Every client can publish on the channel, so a
    /// message can be any text.
    bool has_issued(std::string_view text) const noexcept;

private:
    const std::unique_ptr<Connection> connection_;
    std::string channel_{};
    std::uint64_t tickets_ = 0;
    Clock::time_point next_read_{};
};

/// How long a waiter does not use a node that has refused to keep a queue.
inline constexpr Clock::duration queue_refusal_duration = std::chrono::minutes{1};
/// The same for a node that has too many clients to accept the connection of the waiter.
inline constexpr Clock::duration full_server_pause = std::chrono::seconds{1};

/// Why a server keeps no queue, and until when this is assumed.
struct QueueRefusal {
    detail::NodeFailure why{};
    Clock::time_point until{};
};

/// The listeners of one node in one group that no waiter uses. Any thread may call the functions.
class ListenerPool {
public:
    /// `config` must have a Server, and outlive the object, as `network` must. The pool keeps at most
    /// `max_idle` listeners.
    ListenerPool(const NodeConfig& config, Network& network, std::size_t max_idle)
        : config_(config), network_(network), max_idle_(max_idle) {}

    std::string node_name() const { return config_.endpoint.name(); }

    /// Returns a listener, which is subscribed to its channel or is about to subscribe. Returns null while
    /// the server refuses to keep a queue, or if the node is not trusted. In the latter case, if `may_probe`
    /// is true and a probe is due, a listener on a new connection is the probe.
    std::unique_ptr<Listener> check_out(Clock::time_point now, bool may_probe);
    void check_in(std::unique_ptr<Listener> listener, Clock::time_point now);
    /// Disconnects a listener that was checked out.
    void drop(std::unique_ptr<Listener> listener) noexcept;
    void drop_all() noexcept;

    /// Goes on with the subscription of a listener as far as possible without blocking. Returns true once it
    /// listens. If it cannot subscribe until `until`, its connection is broken afterwards. Records that the
    /// node has answered the handshake or has failed, or that it keeps no queue.
    bool subscribe(Listener& listener, Clock::time_point until, Clock::time_point now);

    /// Records that the server keeps no queue for this client, for example because the Redis user may not use
    /// its key.
    void refused_to_queue(QueueRefusal refusal);
    /// Returns the reason of the last call of refused_to_queue(), or nothing if its time is over.
    std::optional<detail::NodeFailure> queue_refusal(Clock::time_point now);

private:
    std::unique_ptr<Listener> take() noexcept;
    void could_not_listen(const Connection& connection, Clock::time_point now);

    const NodeConfig& config_;
    Network& network_;
    const std::size_t max_idle_;

    std::mutex mutex_{};
    // Guarded by mutex_.
    std::vector<std::unique_ptr<Listener>> unused_{};
    QueueRefusal refusal_{};
};

/// One for each node.
using ListenerPools = std::span<const std::unique_ptr<ListenerPool>>;

}  // namespace redlock
