// One node as all threads share it: its connections between the rounds, and its health.
//
// A connection without pending replies is idle and serves the next round. One with pending replies is
// draining: the release of a SET must go behind it on the same connection (rule B5), and its replies are read
// whenever the node is looked at. So is one that is being made and has releases queued, which are sent when
// the server has accepted it. A node that is not trusted (NodeHealth) is asked only when a probe is due
// or the vote hangs on it, and is trusted again when a probe, one connection at a time, has finished its
// handshake, or when a late reply has come and its pause is over or the vote hangs on it.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/node_health.hpp>
#include <redlock/detail/quorum_round.hpp>
#include <redlock/nodes.hpp>

#include "os/network.hpp"
#include "redis/connection.hpp"
#include "redis/listener.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace redlock {

/// What an observer is told of a node: kept here until the round is over and no mutex is held.
struct NodeEvent {
    enum class Kind : std::uint8_t { connecting, disconnected, backing_off };
    Kind kind = Kind::connecting;
    detail::NodeFailure failure{};
    Clock::duration pause{};
};

/// A connection for the part of a node in a round; none if the node is left alone for now.
struct CheckOut {
    std::unique_ptr<Connection> connection{};
    bool trusted = false;  ///< worth waiting for whatever the votes are
};

class Node {
public:
    struct Options {
        std::size_t max_idle = 64;
        bool observed = false;  ///< whether anybody calls take_events()
    };

    /// No I/O. `network` must outlive it.
    Node(NodeConfig config, Network& network, Options options);
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    std::string name() const { return config_.endpoint.name(); }
    bool has_sentinels() const noexcept { return config_.has_sentinels(); }

    /// Reads what has come in since, and reports to the round what to expect of the node.
    void look(Clock::time_point now, std::size_t index, detail::QuorumRound& round);

    /// The requests whose SET is still pending here on some connection: behind another one they would
    /// overtake it.
    std::vector<std::size_t> overtaking(std::span<const Request> requests);

    /// A connection for one command: the one on which its SET is pending, if any; for an acquisition, the one
    /// on which a release of the resource, or the enter_queue of its ticket, is pending. A node that is not
    /// trusted gives one only if its next probe is due, or `needed`, or to a release.
    CheckOut check_out(const Command& command, Clock::time_point now, bool needed);

    /// The same for commands of several owners, none of which may have a SET pending here.
    CheckOut check_out_for_many(Clock::time_point now, bool needed);

    /// Takes it back, in whatever state.
    void check_in(std::unique_ptr<Connection> connection, Clock::time_point now);

    /// A connection that listens, or is about to; null if the node is left alone for now.
    std::unique_ptr<Listener> check_out_listener(Clock::time_point now);
    /// Takes it back, if it still listens; ends it.
    void check_in_listener(std::unique_ptr<Listener> listener, Clock::time_point now);
    void drop_listener(std::unique_ptr<Listener> listener) noexcept;
    /// For the next minute check_out_listener() returns null: this node keeps no queue for us.
    void refused_to_queue(detail::NodeFailure why, Clock::time_point now);
    /// While it gives none for such a reason: that.
    std::optional<detail::NodeFailure> queue_refusal(Clock::time_point now);

    /// Reads and writes on the connections that have something pending. Returns whether something is not sent
    /// yet.
    bool send_unsent(Clock::time_point now);

    /// The connections of which something is not sent yet; they stay here.
    void append_unsent(std::vector<Connection*>& connections);

    /// A handshake was answered; the node answered in time; the node did not.
    void connected();
    void succeeded();
    void failed(detail::NodeFailure failure, Clock::time_point now);

    detail::NodeFailure last_failure();

    /// What has happened since the last call.
    std::vector<NodeEvent> take_events();

private:
    struct Draining {
        std::unique_ptr<Connection> connection;
        Clock::time_point until;  // no key that it may still make lives longer
    };

    bool was_silent(const Connection& connection, Clock::time_point now) const noexcept;
    bool is_former_locked(const Connection& connection) const;
    void drop_former_locked();
    void drain_locked(Clock::time_point now);
    void advance_probe_locked(Clock::time_point now);
    std::vector<Draining>::iterator with_set_of_locked(std::string_view owner);
    std::vector<Draining>::iterator connection_to_follow_locked(const Command& command);
    std::vector<Draining>::iterator with_release_of_locked(Resources resources);
    std::vector<Draining>::iterator without_set_locked();
    std::vector<Draining>::iterator being_made_locked();
    std::unique_ptr<Connection> take_locked(std::vector<Draining>::iterator it);
    std::unique_ptr<Connection> take_idle_locked(Clock::time_point now, bool release);
    std::unique_ptr<Connection> connect_locked(Clock::time_point now);
    CheckOut check_out_any_locked(bool release, Clock::time_point now, bool needed);
    CheckOut check_out_trusted_locked(bool release, Clock::time_point now);
    CheckOut check_out_untrusted_locked(bool release, Clock::time_point now, bool due);
    void keep_locked(std::unique_ptr<Connection> connection, Clock::time_point now);
    void keep_idle_locked(std::unique_ptr<Connection> connection, Clock::time_point now);
    void keep_draining_locked(std::unique_ptr<Connection> connection, Clock::time_point until);
    void drop_locked(std::unique_ptr<Connection> connection, std::error_code cause = {},
                     const char* why = "") noexcept;
    void note_locked(NodeEvent event);
    void note_disconnected_locked(const Connection& connection, std::error_code cause = {},
                                  const char* why = "") noexcept;
    void fail_locked(detail::NodeFailure failure, Clock::time_point now);

    // Constant after construction.
    const NodeConfig config_;
    Network& network_;
    const Options options_;

    // Guarded by mutex_, which is never held across a wait.
    std::mutex mutex_;
    detail::NodeHealth health_{};
    std::shared_ptr<Resolution> resolution_{};
    std::string server_{};  // the address that its Sentinels have named last
    std::size_t first_address_ = 0;
    std::vector<std::unique_ptr<Connection>> idle_{};
    std::vector<Draining> draining_{};
    std::unique_ptr<Connection> probe_{};
    std::vector<std::unique_ptr<Listener>> listeners_{};
    Clock::time_point no_listener_before_{};
    detail::NodeFailure queue_refusal_{};
    std::vector<NodeEvent> events_{};
};

}  // namespace redlock
