// A connection of one group to a server, and its *users*: the rounds that have a command pending on it, or
// wait until they may send their command. Only one thread at a time may use it (node.hpp).
//
//     state    | meaning                                              | transitions
//     ---------+------------------------------------------------------+-------------------------------------
//     current  | It gets the next command. There is one at most. It   | start_draining() → draining
//              | may still be in the making.                          |
//     draining | It has late replies to read or releases to send, and | reuse() → current
//              | gets no new commands, except clean-ups that must     | give_up_releases() → silent
//              | follow a command on it.                              |
//     silent   | It is draining, and give_up_releases() has taken the | reuse() → current
//              | releases off it, if any, for another connection.     |
//     broken   | final: its users leave it, and Node drops it         |
//
// A connection is *ready* when the server has answered the handshake (connection.hpp). A draining connection
// is *empty* if nothing on it is pending or unsent.
//
// Each state can change to broken, by Connection::fail(), which closes the socket. Without a cause, the node
// has not failed: this process ends the connection. Draining connections are kept for commands that must
// follow a pending one (pending_replies.hpp), and Node drops them when is_over() returns true.
#pragma once

#include <redlock/clock.hpp>

#include "../os/network.hpp"
#include "../round/connection_choice.hpp"
#include "connection.hpp"
#include "server.hpp"

#include <cstddef>
#include <cstdint>
#include <system_error>
#include <vector>

namespace redlock {

/// A round that uses connections.
class ConnectionUser : public detail::Requester {
public:
    /// Continues the round at this node, because an answer has come, the command may be sent, or the
    /// connection is broken. It may be called although nothing has changed. A broken connection must be left.
    /// Returns true if the round still waits until it may send.
    ///
    /// Of the functions that change a Node, the round may call only drop_former() and join() here. It may use
    /// and leave its connections, and a new Node may be made for a server of a Redis Cluster.
    virtual bool on_progress(std::size_t node, Clock::time_point now) noexcept = 0;

protected:
    ~ConnectionUser() = default;
};

/// What is left to do for the releases of rounds that are over.
enum class Rest : std::uint8_t {
    nothing,
    /// A release has no reply, and a device on the way may have forgotten the connection. check_silence() of
    /// the node should be called after a node_timeout.
    unconfirmed,
    unsent  ///< Bytes are queued, collected, or not accepted by a socket (Connection::unsent()).
};

class Link final : public Connection {
public:
    /// Starts connecting. It may be broken at once, for example for want of a descriptor. `config` must have
    /// a Server. `config` and `network` must outlive the object. The users get the index `node`.
    Link(const NodeConfig& config, Network& network, Clock::time_point now, std::size_t node);
    ~Link() { stop_draining(); }

    bool is_current() const noexcept { return state_ == State::current && !broken(); }
    /// Returns true in the states draining and silent.
    bool is_draining() const noexcept { return state_ != State::current && !broken(); }
    /// Returns the state as the choice of a connection knows it. Requires that it is the current one.
    detail::ConnectionSituation::Current situation(Clock::time_point now) const noexcept;

    // ---- Its users

    std::size_t users() const noexcept { return users_; }
    /// The user must leave().
    void join() noexcept { ++users_; }
    /// Returns true if the user may send its command. It must do so at once. If the function returns false,
    /// the user calls wait_to_write().
    bool may_send(detail::KeyEffect effect, Clock::time_point now) noexcept;
    void wait_to_write(ConnectionUser& user) { waiting_.push_back(&user); }
    void leave(const ConnectionUser& user) noexcept;
    /// Lets all users leave the connection, which is broken, so users() is 0 afterwards.
    void fail_users(Clock::time_point now);

    // ---- Progress

    /// Connects, writes and reads as far as possible without blocking, and lets the users continue. If there
    /// is a `clock`, waits until the server sends something; see Connection::blocking_receive(). Returns the
    /// present instant, read after the wait, or `now` without a clock. If memory runs out, the connection
    /// breaks, or the next call does the rest.
    Clock::time_point progress(Clock::time_point now, Clock* clock = nullptr);
    /// Returns true if write_if_due() has something to do.
    bool has_collected() const noexcept { return collected() > 0 || collected_since_ != Clock::never(); }
    /// Writes the collected commands if it is time, or if `all` is true. The connection may break.
    void write_if_due(Clock::time_point now, bool all);
    /// Returns when to call write_if_due() again at the latest.
    Clock::time_point write_due(Clock::time_point now) const noexcept;

    // ---- Its end

    /// If the connection is current, the state becomes draining. From a minute after `since`, or later when
    /// the keys of its pending commands have expired, the connection is over as soon as it has no users. If
    /// it was never ready, the next connection tries another address (Server::leave_address()).
    void start_draining(Clock::time_point since) noexcept;
    /// If the connection drains, is empty, and may still be used, makes it the current one, and returns true.
    /// Requires that there is no current one.
    bool reuse(Clock::time_point now) noexcept;
    /// Returns true if the connection has no users and no further use. It is then broken, or drains and is
    /// empty, hangs, or has drained for too long.
    bool is_over(Clock::time_point now) const noexcept;
    /// Calls disconnect() with the reason why the connection is over. Requires is_over(). If the connection
    /// was ready, and has drained for too long, its releases are dropped. Afterwards it is broken and nothing
    /// is pending, so is_over() stays true.
    void end(Clock::time_point now) noexcept;
    /// Ends the connection, which may be broken already. The releases that are to be repeated go to
    /// Server::kept(). The observer gets `reason` and `words`, or the failure of a broken connection.
    ///
    /// If the connection broke before it was ready, perhaps no round reports the failure. So this function
    /// records it in two cases: a probe is under way, or the node is trusted and a release of a round that is
    /// over was pending here. But a node has not failed if this process has a shortage.
    void disconnect(Clock::time_point now, std::error_code reason = {}, const char* words = "") noexcept;

    /// If a reply has been missing for a node_timeout, reads what has arrived. If nothing comes on a current
    /// connection, the node has failed, and the connection drains. If nothing comes on a draining one, calls
    /// give_up_releases(): the releases that may be sent on another connection, and were not sent again
    /// before, go to Server::kept(). Does nothing in the state silent, and if the connection was never ready.
    /// Returns true if releases were given up. The connection may break.
    bool check_silence(Clock::time_point now);
    /// If a device on the way may have forgotten the connection (Rest::unconfirmed), if check_silence() would
    /// act on it, or if it did not get ready within max_connecting, drains and calls give_up_releases().
    /// Returns true if releases were given up.
    bool leave_forgotten(Clock::time_point now);
    /// Sends the kept releases again on this connection (KeptReleases::send_again()). It may break.
    void send_kept(bool answers, Clock::time_point now);
    /// Returns what is left to do for the late releases on this connection.
    Rest rest() const noexcept;

private:
    // A broken connection that is not `current` here is still counted in Server::draining().
    enum class State : std::uint8_t { current, draining, silent };

    bool is_newly_silent(Clock::time_point now) const noexcept;
    bool give_up_releases();
    bool is_free_for(detail::KeyEffect effect, Clock::time_point now) const noexcept;
    bool holds_back() const noexcept;
    Clock::duration longest_collecting() const noexcept;
    void deliver_answers(Clock::time_point now);
    void let_write(Clock::time_point now);
    void stop_draining() noexcept;

    // Only if Sentinels name the server.
    bool may_lead_to_former_master(Clock::time_point now) const noexcept;
    void record_sign_of_life(Clock::time_point now);
    bool fail_if_outdated(Clock::time_point now);

    const std::size_t index_;

    State state_ = State::current;
    Clock::time_point until_ = Clock::never();  // if it drains: dropped if replies are still pending then
    std::size_t users_ = 0;
    std::vector<ConnectionUser*> waiting_{};  // users that wait to send; null if one waits no more
    bool is_continuing_ = false;              // let_write() is continuing the users in waiting_
    bool has_replied_ = false;                // since the last write
    bool has_unwritten_leases_ = false;       // a SET or an extension is still to be written
    Clock::time_point collected_since_ = Clock::never();
    Clock::time_point last_reply_{};
};

}  // namespace redlock
