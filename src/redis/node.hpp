// The client's side of one node, which is one of the N Redis masters that vote: its connections in one
// *lane*. A round sends a command to the nodes and counts their votes. A lane is one connection to each node,
// and the connections that it replaces. A RedisNodes has several lanes for its threads (lanes.hpp), and one
// for each event loop. What the lanes of the threads know together about the node is in Server (server.hpp).
//
// A reply is *pending* from the sending of its command until it is received. It is *late* if its round has
// ended meanwhile.
//
//     connection | meaning                                                   | until
//     -----------+-----------------------------------------------------------+------------------------------
//     current    | It gets the next command. There is one at most. It may    | it drains, or it breaks
//                | still be in the making.                                   |
//     draining   | It has late replies to read or releases to send, and gets | the last reply has come, or
//                | no new commands, except for releases that must follow a   | it took too long
//                | command on it.                                            |
//     listener   | It is subscribed to the channel on which a waiter, a      | a waiter checks it out
//                | client that waits for a resource, receives the message    |
//                | that wakes it (listener.hpp).                             |
//
// Draining connections are kept because the release of a SET must be written on the connection on which the
// SET is pending. On another connection it could overtake the SET (rule B5 in docs/rules.md).
//
// A node is *trusted* if it is expected to answer in time. After a failure it is in *back-off*, a pause that
// grows with each failure (NodeHealth). After the pause a *probe* is due: one attempt to reach the node
// again. The node is trusted again when it has answered a command or a handshake.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>

#include "../os/network.hpp"
#include "../round/connection_choice.hpp"
#include "../round/node_health.hpp"
#include "../round/quorum_round.hpp"
#include "connection.hpp"
#include "listener.hpp"
#include "server.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace redlock {

/// The largest number of draining connections to a node: in one lane, and those of all lanes on which nothing
/// was sent. Otherwise a silent node could take all descriptors of the process.
inline constexpr std::size_t max_draining = 64;

/// How long a waiter does not use a node that has refused to keep a queue.
inline constexpr Clock::duration queue_refusal_duration = std::chrono::minutes{1};
/// The same for a node that has too many clients to accept the connection of the waiter.
inline constexpr Clock::duration full_server_pause = std::chrono::seconds{1};

/// A round that uses connections.
class ConnectionUser : public detail::Requester {
public:
    /// Continues the round at this node, because an answer has come, the command may be written, or the
    /// connection is broken. It may be called although nothing has changed. A broken connection must be left.
    /// Returns true if the round still waits until it may write.
    virtual bool on_progress(std::size_t node, Clock::time_point now) noexcept = 0;

protected:
    ~ConnectionUser() = default;
};

/// The connection over which a round asks a node.
struct CheckOut {
    /// Null if the node is not asked, because it is in back-off or because of the `obstacle`.
    Connection* connection = nullptr;
    /// True if the round should await the node as it awaits a trusted one (quorum_round.hpp).
    bool worth_waiting_for = false;
    /// A text for the report if the command must follow another one, and cannot be sent on its connection.
    const char* obstacle = nullptr;
};

class Node {
public:
    struct Options {
        std::size_t max_idle = 64;
        bool observed = false;     ///< true if somebody calls take_events()
        bool collects = true;      ///< see Connection::set_collecting()
        std::size_t index = 0;     ///< the index of this node, which ConnectionUser::on_progress() gets
        std::size_t position = 0;  ///< PollEntry::node of its connections
    };

    /// Does no I/O. `network` must outlive the node.
    Node(NodeConfig config, Network& network, Options options);
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    std::string name() const { return config_.endpoint.name(); }
    bool has_sentinels() const noexcept { return config_.has_sentinels(); }
    std::size_t index() const noexcept { return options_.index; }

    // ---- If the node is a Redis Cluster, the object is for one of its servers.

    bool in_cluster() const noexcept { return config_.cluster != nullptr; }
    RedisCluster& cluster() const noexcept { return *config_.cluster; }
    bool is_of(const NodeConfig& server) const noexcept { return server_ == server.server; }
    const std::string& host() const noexcept { return config_.endpoint.host; }
    /// Returns the detail of a failure, with the name of the server if it is one of a Cluster.
    std::string with_server(std::string detail) const {
        return in_cluster() ? "server " + name() + (detail.empty() ? "" : ": " + detail) : detail;
    }
    bool trusted();
    /// Returns the entry of the SET of this owner that is unanswered on a connection, or null.
    const detail::PendingReply* unanswered_set_of(std::string_view owner) const noexcept;

    /// Prepares the node for a round: reports the health of the node to the round, and forgets connections
    /// that are broken and unused. Finds out whether a reply has been missing for too long. If Sentinels name
    /// the server of this node, breaks connections to a *former master*, a server that they have replaced by
    /// another one.
    void refresh(Clock::time_point now, std::size_t index, detail::QuorumRound& round);

    /// Returns the indices of the requests whose owner has a SET pending on a draining connection of this
    /// node. On another connection they could overtake the SET.
    std::vector<std::size_t> requests_that_could_overtake(std::span<const Request> requests);

    // ---- The connections. Only one thread at a time may call these functions: the one that leads the lane.
    // Any thread may call those about listeners and health.

    /// Returns the connection for the requests of a round; connection_choice.hpp has the table of choices.
    /// The user must leave() it.
    CheckOut join(std::span<const Request> requests, Clock::time_point now, bool needed);
    /// Returns true if a command may be written now, and counts it as one that is. Otherwise the user calls
    /// wait_to_write().
    bool may_write(const Connection& connection, detail::KeyEffect effect, Clock::time_point now);
    void wait_to_write(const Connection& connection, ConnectionUser& user);
    /// Records that the user has left the connection. If it `gives_up`, because no reply has come in time, no
    /// further command is written on the connection, except for releases that must follow a pending SET. A
    /// connection that was never ready goes on.
    void leave(const Connection& connection, const ConnectionUser& user, bool gives_up,
               Clock::time_point now) noexcept;

    /// Appends an entry for each connection that is not broken.
    void append_poll_entries(std::vector<PollEntry>& entries) const;
    /// Appends an entry for each of them on which a release has no reply although its round is over.
    void append_owing_entries(std::vector<PollEntry>& entries) const;
    /// Reads from the connection of this entry, and lets its users continue.
    void take_ready(const PollEntry& entry, Clock::time_point now);
    /// Waits until the server sends something on this connection, and reads it; see Connection. Returns the
    /// time.
    Clock::time_point blocking_receive(Connection& connection);
    /// Writes the collected commands that must be written now, or all of them. Returns when to call the
    /// function again at the latest. Disconnects the connections that are not needed any more.
    Clock::time_point write_collected(Clock::time_point now, bool all = false);
    /// Returns true if the sockets have not accepted all bytes.
    bool has_unsent() const noexcept;
    /// Finds out whether a reply has been missing for too long. The releases on a connection on which nothing
    /// has come for a node_timeout are sent again on another one. Returns true if there were any.
    bool check_silence(Clock::time_point now);
    /// Returns true if check_silence() should be called in a node_timeout: a release has no reply although
    /// its round is over, and a device on the way may have forgotten the connection.
    bool may_have_lost_release() const noexcept;
    void add_late_replies(detail::LateReplies& late) const;

    /// Returns a listener, which is subscribed to its channel or is about to subscribe. Returns null while a
    /// call of refused_to_queue() lasts, or if the node is not trusted. In the latter case, if `may_probe` is
    /// true and a probe is due, a listener on a new connection is the probe.
    std::unique_ptr<Listener> check_out_listener(Clock::time_point now, bool may_probe);
    void check_in_listener(std::unique_ptr<Listener> listener, Clock::time_point now);
    void drop_listener(std::unique_ptr<Listener> listener) noexcept;
    void drop_listeners() noexcept;
    /// Records that the server keeps no queue for this client, for example because the Redis user may not use
    /// its key. This is assumed for the time `lasts`, in which check_out_listener() returns null.
    void refused_to_queue(detail::NodeFailure why, Clock::time_point now,
                          Clock::duration lasts = queue_refusal_duration);
    /// Returns the reason that the last call of refused_to_queue() got, or nothing if its time is over.
    std::optional<detail::NodeFailure> queue_refusal(Clock::time_point now);

    /// Must be called before the last calls of append_unfinished(), after which there are no rounds. The
    /// releases of broken connections then get one more attempt, even if the node is not trusted.
    void begin_to_close() noexcept { config_.kept_releases->permit_attempt(); }
    /// Appends the connections that have bytes which are not sent yet, or a release without a reply. Requires
    /// that no round and no background task is under way. The pointers become invalid with the next call of
    /// another function.
    ///
    /// If `repeats` is true, first sends the kept releases again, as write_collected() does. Otherwise they
    /// are left to the other Node objects of the process.
    void append_unfinished(std::vector<Connection*>& connections, bool repeats);

    /// Closes all connections, and keeps their releases. Requires that no round is under
    /// way.
    void close_connections(Clock::time_point now) noexcept;

    /// Keeps the releases of a broken connection, and sends them again later.
    void repeat_later(detail::PendingReplies releases) noexcept {
        config_.kept_releases->keep(std::move(releases), true);
    }

    /// Records that the node has answered the handshake of this connection. The next one begins with the same
    /// address.
    void connected(const Connection& connection);
    /// Records that the node has answered a command in time.
    void succeeded();
    /// Records that the node has failed.
    void failed(detail::NodeFailure failure, Clock::time_point now);

    /// Returns the last failure, which may be long ago. The cause is empty if the node has never failed.
    detail::NodeFailure last_failure();

    /// Returns the events since the last call.
    std::vector<NodeEvent> take_events();

private:
    /// A connection, and what its users do.
    struct Link {
        explicit Link(std::atomic<std::size_t>& of_node) noexcept : draining(of_node) {}
        ~Link() { set_drains(false); }
        Link(const Link&) = delete;
        Link& operator=(const Link&) = delete;

        void set_drains(bool value) noexcept {
            if (value && !drains) ++draining;
            if (!value && drains) --draining;
            drains = value;
        }

        std::atomic<std::size_t>& draining;  // Server::draining
        std::unique_ptr<Connection> connection{};
        std::size_t users = 0;
        std::vector<ConnectionUser*> waiting{};  // users that wait until they may write; null if one has left
        bool is_continuing = false;              // let_write() is continuing the users in `waiting`
        bool has_replied = false;                // since the last write
        bool has_unwritten_leases = false;       // other commands than releases are still to be written
        Clock::time_point collected_since = Clock::never();
        bool drains = false;                       // see set_drains()
        Clock::time_point until = Clock::never();  // if it drains: dropped if replies are still pending then
        Clock::time_point last_reply{};
        bool given_up = false;  // give_up_if_silent() has sent its releases on another connection
    };

    bool may_lead_to_former_master(const Connection& connection, Clock::time_point now) const noexcept;
    bool is_former_locked(const Connection& connection) const;
    void drop_former_locked();
    void connected_locked(const Connection& connection);
    std::unique_ptr<Connection> connect(Clock::time_point now);
    void leave_address_locked(const Connection& connection) noexcept;
    void drop(std::unique_ptr<Connection> connection, Clock::time_point now, std::error_code cause = {},
              const char* why = "") noexcept;
    void add_event_locked(NodeEvent event);
    void add_disconnection_locked(const Connection& connection, std::error_code cause = {},
                                  const char* why = "") noexcept;
    void add_write(Connection& connection, Clock::duration waited) noexcept;
    void fail_locked(detail::NodeFailure failure, Clock::time_point now);
    /// Returns true if the node is trusted, and it need not be found out whether its server was replaced.
    bool is_calm() const noexcept { return server_->calm && !config_.has_sentinels(); }
    /// Records that the server answers. It should then answer the kept releases, too.
    void answered() noexcept { server_->answered = config_.kept_releases->changes(); }
    /// Returns true if the node is trusted, and has answered since the last release was kept.
    bool answers_locked() const noexcept {
        return server_->health.trusted() && server_->answered == config_.kept_releases->changes();
    }

    Link& link_of(const Connection& connection) const;
    void append_entry(const Link& it, std::vector<PollEntry>& entries) const;
    Link* current_link() const noexcept;
    Link* link_to_follow(const Command& command) const noexcept;
    detail::ConnectionChoice choose(const Command& command, const Link* current, bool follows,
                                    Clock::time_point now, bool needed, bool locked);
    Link& begin_link(Clock::time_point now);
    void drop_unused(Clock::time_point now);
    bool repeat_releases(Clock::time_point now);
    static void start_draining(Link& it, Clock::time_point since) noexcept;
    void limit_draining();
    bool has_turn(const Link& it, detail::KeyEffect effect, Clock::time_point now) const;
    struct Before;
    void progress(Link& it, Clock::time_point now);
    void let_users_continue(Link& it, const Before& before, Clock::time_point now);
    void fail_if_silent(Clock::time_point now);
    bool give_up_if_silent(Link& it, Clock::time_point now);
    void deliver_answers(Link& it, Clock::time_point now) const;
    void record_sign_of_life(Link& it, Clock::time_point now);
    void let_write(Link& it, Clock::time_point now);
    bool fail_if_outdated(Link& it, Clock::time_point now);
    void fail_users(Link& it, Clock::time_point now);
    void sweep(Clock::time_point now, bool repeats = true);
    bool has_to_sweep() const noexcept;
    bool is_over(Link& it, Clock::time_point now);

    // Constant after construction.
    const NodeConfig config_;
    Network& network_;
    const Options options_;

    const std::shared_ptr<Server> server_;

    // Guarded by server_->mutex.
    std::string named_{};  // Server::named when this object has looked last
    std::vector<std::unique_ptr<Listener>> listeners_{};
    Clock::time_point no_listener_before_{};  // the end of the time of refused_to_queue()
    detail::NodeFailure queue_refusal_{};

    std::vector<std::unique_ptr<Link>> links_{};  // used by one thread at a time
};

}  // namespace redlock
