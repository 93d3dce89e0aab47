// The connections of one group to one node (Link). If the node is a Redis Cluster, there is an object for
// each of its servers (NodeGroup).
//
// A round calls refresh() when it begins, for the node or server that it would ask then. For each connection
// that it joins, it calls drop_former(), could_overtake() and join(), also inside on_progress() (link.hpp).
// Then it calls the functions of the Link until it leaves the Link. The thread that leads the Lane of the
// group, or its event loop, calls the other functions:
//
//     when                                         | functions
//     ---------------------------------------------+-----------------------------------------------------
//     a round begins, and the node is a Cluster    | leave_former_server()
//     a round chooses a server of the Cluster      | binding_command_of(), trusted()
//     in each pass, after the rounds were          | write_collected(), append_poll_entries(), then
//     continued                                    | take_ready() for each connection that is ready
//     a private lane (lane.hpp) lacks one reply    | blocking_receive() in place of the last two;
//                                                  | write_collected() follows at the end of the round
//     a round has ended                            | add_late_replies()
//     the leading thread stops leading             | write_all(), lacks_connection()
//     in the background, in each pass of a loop    | check_silence()
//     a loop has been idle for the longest ttl     | give_up_unwritten()
//     at the end of the group                      | append_unfinished(), leave_forgotten(),
//                                                  | close_connections()
//
// A function that is not noexcept may throw std::bad_alloc. Nothing is lost then: the next call of
// write_collected() or take_ready() does the rest. Only the result of check_silence() may be lost, and join()
// has joined no connection.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>

#include "../os/network.hpp"
#include "../round/unanswered.hpp"
#include "link.hpp"
#include "server.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock {

/// The limit of the draining connections to a node: of one group and, less strictly, of all groups together.
/// When more of them drain, Node::limit_draining() soon breaks one. Without it, a silent node could take all
/// descriptors of the process.
inline constexpr std::size_t max_draining = 64;

/// The connection over which a round asks a node.
struct JoinedLink {
    /// Null if the node is not asked, because it is not trusted.
    Link* connection = nullptr;
    /// See ConnectionChoice.
    bool worth_waiting_for = false;
};

/// Only one thread at a time may use an object: the one that leads the Lane, runs the event loop, or closes
/// the connections. Every thread may read what is constant, such as server().
class Node : detail::NotCopied {
public:
    struct Options {
        bool collects = true;   ///< see Connection::set_collecting()
        std::size_t index = 0;  ///< the index of this node, which ConnectionUser::on_progress() gets
    };

    /// Does no I/O. `config` must have a Server (node_config.hpp). `network` must outlive the node.
    Node(NodeConfig config, Network& network, Options options)
        : config_(std::move(config)), network_(network), options_(options) {}

    const NodeConfig& config() const noexcept { return config_; }
    std::size_t index() const noexcept { return options_.index; }

    // ---- If the node is a Redis Cluster, the object is for one of its servers.

    /// Returns null if the node is no Cluster.
    const std::shared_ptr<RedisCluster>& cluster() const noexcept { return config_.cluster; }
    /// Returns the detail of a failure, with the name of the server if it is one of a Cluster.
    std::string with_server(const std::string& detail) const {
        return cluster() ? "server " + config_.endpoint.name() + (detail.empty() ? "" : ": " + detail)
                         : detail;
    }
    bool trusted(Clock::time_point now) noexcept { return config_.server->health(now).trusted; }
    /// Requires cluster(). If the server has failed, and others have replaced it, breaks its connections.
    void leave_former_server(Clock::time_point now);
    /// Returns the pending command that binds a connection to this owner (pending_replies.hpp), or null.
    const detail::PendingReply* binding_command_of(std::string_view owner) const noexcept;

    /// Prepares the node for a round, and returns its health. Reads silent connections (check_silence()), and
    /// uses an empty draining one again (tidy_up()). If Sentinels name the server, breaks connections to
    /// a former master.
    Server::Health refresh(Clock::time_point now);

    // ---- The connections

    /// Only if Sentinels name the server: breaks the connections to a former master.
    void drop_former();
    /// Returns true if the command must follow another one on a draining connection of this node, and cannot,
    /// because it is no clean-up.
    bool could_overtake(const Command& command) const noexcept;
    /// Returns the connection over which a round sends this command; connection_choice.hpp has the table of
    /// choices. It may be broken already. Requires that could_overtake() is false. The user must leave the
    /// connection. If `needed` is true, the outcome of the round depends on this node, so it is asked even if
    /// it is not trusted.
    JoinedLink join(const Command& command, Clock::time_point now, bool needed);
    /// `owing`: only the connections on which a clean-up (cleans_up()) of a round that is over is pending.
    enum class Polled : bool { all, owing };
    /// Appends an entry for each connection that is not broken, and that `polled` names.
    void append_poll_entries(std::vector<PollEntry>& entries, Polled polled) const;
    /// Connects, writes and reads on the connections with this descriptor, and lets their users continue.
    /// Several can have it: that of a Resolution which they share.
    void take_ready(int fd, Clock::time_point now);
    /// Waits until the server sends something on this connection, and reads it; see Connection. Returns the
    /// present instant, read after the wait. If the connection breaks, its users have left it then, and
    /// `link` may not exist any more.
    Clock::time_point blocking_receive(Link& link);
    /// Writes the collected commands that must be written now, or all of them. Returns when to call the
    /// function again at the latest. Drops the connections that are over, and sends kept releases again. (If
    /// a kept release may only be sent later, the next pass of any group or the end of the nodes sends it.)
    Clock::time_point write_collected(Clock::time_point now, bool all = false);
    /// Writes all collected commands. Returns what is left to do for the releases on the connections. It is
    /// `unsent` if kept releases, or commands of rounds that continue, were collected meanwhile.
    Rest write_all(Clock::time_point now);
    /// Calls Link::check_silence() for each connection. The releases that are given up are sent again on
    /// another connection. Returns true if there were any.
    bool check_silence(Clock::time_point now);
    /// Writes what is collected, and breaks the connections that have unsent bytes and a late clean-up. A
    /// release is kept for the other groups.
    void give_up_unwritten(Clock::time_point now);
    /// Adds the commands without a requester (LateReplies::add() passes over the others).
    void add_late_replies(detail::LateReplies& late) const;
    /// Returns true if no connection is ready, and if the one that was dropped last was broken by a shortage
    /// of this process, such as one of descriptors.
    bool lacks_connection() const noexcept;

    /// Ends collecting, and appends the connections with unsent bytes, or with a clean-up without a reply.
    /// Requires that no round and no background task is under way. The pointers become invalid with the next
    /// call of another function.
    ///
    /// If `sends_kept` is true, first sends the kept releases again. Otherwise they are left to the other
    /// Node objects of the process.
    void append_unfinished(std::vector<Connection*>& connections, bool sends_kept);
    /// Calls Link::leave_forgotten() for each connection. The releases that are given up are sent again on
    /// another connection.
    void leave_forgotten(Clock::time_point now);

    /// Disconnects and drops all connections, and keeps their releases. Requires that no round is under way.
    void close_connections(Clock::time_point now) noexcept;

    /// Returns what all groups know together about the server.
    Server& server() const noexcept { return *config_.server; }

private:
    Link* current_link() const noexcept;
    Link* link_to_follow(const Command& command) const noexcept;
    Link& begin_link(Clock::time_point now);
    void limit_draining();
    template <class Function>
    void for_each_link(Function function);
    void sweep(Clock::time_point now, bool sends_kept = true);
    bool has_to_sweep() const noexcept;
    bool are_current() const noexcept;
    void tidy_up(Clock::time_point now);
    bool repeat_releases(Clock::time_point now);

    // Constant after construction.
    const NodeConfig config_;
    Network& network_;
    const Options options_;

    std::uint64_t master_ = 0;  // Server::learn_master() when this object has looked last
    // The oldest is the first. Only Link::progress(), check_silence() and fail_users() continue rounds. A
    // loop that calls one of them must be for_each_link(), because a round that continues may append a Link.
    // No round removes a Link: only tidy_up() and close_connections() do.
    std::vector<std::unique_ptr<Link>> links_{};
    // The connection that was dropped last was broken by a shortage, and none was begun since.
    bool had_shortage_ = false;
};

}  // namespace redlock
