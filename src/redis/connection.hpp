// One connection to the server of one node. It sends commands over a Socket, and parses the replies with
// hiredis, the C client library of Redis.
//
//     state       | meaning                                       | transitions
//     ------------+-----------------------------------------------+----------------------------------
//     resolving   | the addresses of the name are not known yet   | advance() → connecting
//     connecting  | TCP is connecting to one of the addresses     | advance() → securing, handshaking,
//                 |                                               | connecting to the next address if this
//                 |                                               | one refuses, or is silent for too long
//     securing    | the TLS handshake is under way                | advance() → handshaking
//     handshaking | AUTH, SELECT and PING, or later a query such  | advance(), at their last reply →
//                 | as INFO, are sent; commands may be sent       | ready
//                 | behind them                                   |
//     ready       | the server has answered                       | fetch_run_id(), fetch_servers() →
//                 |                                               | handshaking
//     broken      | final: a connection is never revived          |
//
// Each state can change to broken, by fail(). Commands that are sent before the state handshaking are queued,
// and are written directly behind the handshake. No function blocks except blocking_receive().
//
// ReplyQueue says to which command a reply belongs. reply_queue.hpp explains the words.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>

#include "../os/network.hpp"
#include "../round/pending_replies.hpp"
#include "../wire/command_encoding.hpp"
#include "../wire/reply.hpp"
#include "node_config.hpp"
#include "reply_parser.hpp"

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock {

/// The connection itself is the requester of the commands of send_words().
class Connection : private detail::Requester, detail::NotCopied {
public:
    enum class State : std::uint8_t { resolving, connecting, securing, handshaking, ready, broken };

    /// Starts connecting to one of these addresses. `config` and `network` must outlive the connection.
    Connection(const NodeConfig& config, Network& network, Server::Addresses found, Clock::time_point now);
    ~Connection() { close_socket(); }

    /// Returns what the caller has to wait for before it calls advance() again.
    PollEntry poll_entry() const noexcept;
    /// Returns the descriptor of poll_entry(), or -1.
    int fd() const noexcept;

    /// Connects, writes and reads as far as the socket allows without blocking.
    void advance();

    /// Waits until the server sends something, and reads it, in one system call. Returns without input when a
    /// signal arrives, or after half of node_timeout (see RoundDriver::try_blocking_receive() for the
    /// rounding). Does nothing if the connection is not ready.
    void blocking_receive();

    bool ready() const noexcept { return state_ == State::ready; }
    bool broken() const noexcept { return state_ == State::broken; }
    /// Returns true if the connection is broken because this process, or the system, has a shortage: too
    /// little memory or too few descriptors. A cause that is no Errc says so: shortage() or
    /// std::errc::not_enough_memory. The node has not failed then.
    bool has_shortage() const noexcept { return broken() && cause_ && cause_.category() != category(); }
    bool handshaking() const noexcept { return state_ == State::handshaking; }
    /// Returns true if TCP and TLS are connected. The handshake is then written, so that the bytes of a
    /// command can follow it.
    bool established() const noexcept { return ready() || handshaking(); }
    /// Returns true if the connection is ready, or was ready at some time before.
    bool was_ready() const noexcept { return was_ready_; }
    /// Returns when the connection was begun, or became_idle() was called last: for a listener, when it was
    /// given back; if Sentinels name the server, at its last sign of life (link.cpp).
    Clock::time_point since() const noexcept { return since_; }
    void became_idle(Clock::time_point now) noexcept { since_ = now; }
    /// Returns the resolution that has found the server.
    const Resolution& resolution() const noexcept { return *resolution_; }

    /// Returns `text`, which came from the server, in a form that a report may show: without the password
    /// (rule D11 in docs/rules.md).
    std::string quoted(std::string_view text) const;

    const detail::PendingReplies& pending() const noexcept { return pending_; }
    detail::PendingReplies& pending() noexcept { return pending_; }

    // ---- On a broken connection, nothing is sent. A command only gets its entry in pending().

    /// Queries the run id of the server, if `command` needs it (needs_run_id()) and it is not known yet. The
    /// state is handshaking until the server has answered. Does nothing if the connection is not ready.
    void fetch_run_id(const Command& command);

    /// If the node is a Redis Cluster, asks the server for the list of all servers, if it is out of date. The
    /// state is handshaking until the server has answered. Does nothing if the connection is not ready.
    void fetch_servers(Clock::time_point now);

    /// Returns the run id, which a server draws at each start. Returns an empty text if it is not known.
    const std::string& run_id() const noexcept { return run_id_; }

    /// Sends the commands of one requester behind the pending ones. A script is sent whole, or by its digest
    /// if the server knows the script. `awaited` is false if nobody waits for the replies.
    ///
    /// If an answer says that the server has refused the form of a command (PendingReply::is_form_refused),
    /// the requester may send the command again. It is then sent in another form.
    ///
    /// If the requester sends only one command, to several nodes, `for_each_node` keeps its bytes.
    ///
    /// If `asking` is true, each command is sent behind ASKING. A server of a Redis Cluster to which a hash
    /// slot is being moved then executes it. ASKING holds for one command, so a script is sent whole.
    void send(std::span<const Command> commands, const detail::Requester& requester, bool awaited = true,
              detail::CommandForEachNode* for_each_node = nullptr, bool asking = false);
    /// Returns true if the connection is not broken, and bytes are queued, collected, or not accepted by the
    /// socket yet.
    bool unsent() const noexcept {
        return !broken() && (!queued_.empty() || written_ < out_.size() || !plain_out_.empty());
    }

    // ---- Collecting, for a connection that many rounds share (write_choice.hpp).

    /// If `collects` is true and the connection is ready, send() only appends commands to a buffer. They are
    /// written by write_collected(), or when the buffer is full, or if the last write was incomplete.
    void set_collecting(bool collects) noexcept { collects_ = collects; }
    /// Returns how many commands have been collected since the last write.
    std::size_t collected() const noexcept { return collected_; }

    // ---- For listeners, queries of Sentinels, and the command `redlock doctor`

    /// Returns true if the server has closed this new connection because it has too many clients. Other
    /// connections to this server go on working.
    bool was_turned_away() const noexcept { return was_turned_away_; }
    /// Sends a command that consists of `words`. The caller waits for the answer() before it sends another
    /// command. From then on, lists of up to 16 texts and numbers are accepted as replies.
    void send_words(std::span<const std::string_view> words);

    /// Subscribes to `channel`. The server confirms this with one reply. From then on nothing else can be
    /// sent.
    void subscribe(std::string_view channel);
    /// Returns the messages that have arrived since the last call. Call it after each advance(), which reads
    /// 16 KiB at most.
    std::vector<std::string> take_messages() { return std::exchange(messages_, {}); }

    /// Returns `first_address` for the next connection if the present address turns out to be dead. It may
    /// exceed the number of addresses.
    std::size_t next_address() const noexcept { return first_address_ + tried_addresses_; }
    /// Returns `first_address` for the next connection if the present address answers.
    std::size_t present_address() const noexcept { return next_address() - 1; }

    /// Returns true if bytes can be read, or if the server has closed the connection or its TLS session. On
    /// an idle connection, each of these is unexpected. Requires that the connection is established.
    bool has_input_or_end() const noexcept { return (tls_ && tls_->failed()) || socket_->has_input(); }

    /// Returns what a connection that was never ready waits for, as the detail of a timeout. It may end with
    /// a hint (causes.hpp).
    std::string unfinished_step() const;

    /// Changes the state to broken. Without a cause, the node has not failed: this process ends the
    /// connection. Discards the bytes that the kernel has not sent yet. After a plain close(), the kernel
    /// could still send them a long time later. If the connection is broken already, only replaces the cause
    /// and the detail. The users are not told: Node::sweep() does that.
    void fail(std::error_code cause, std::string detail);

    // ---- When broken.
    std::error_code cause() const noexcept {
        return cause_ == shortage() ? make_error_code(Errc::connection_failed) : cause_;
    }
    /// Returns a copy, because the code that receives it may destroy the connection. It may end with a hint
    /// (causes.hpp).
    std::string detail() const { return detail_; }

protected:
    // ---- For Link

    /// Returns true if the name of the host is not resolved, or TCP not connected, after max_connecting.
    bool hangs(Clock::time_point now) const noexcept;
    /// Appends a release that is sent again, in its plain form, which has no other form to fall back to. The
    /// caller must call flush(). If the function throws, this connection is broken.
    void repeat(const detail::PendingReply& release);
    /// Writes what was appended, unless the connection collects commands. If the write fails, the function
    /// reads what the server has said, and may keep a release that the server has refused. The connection is
    /// broken then.
    void flush();

    /// Returns how many pending commands, with those of the handshake, are not collected. Must not be called
    /// after Link::disconnect(), which takes the entries away.
    std::size_t outstanding() const noexcept { return pending_.count() - collected_; }
    void write_collected();
    /// Returns how many commands were passed to a write since the last call.
    std::size_t take_written() noexcept { return std::exchange(written_commands_, 0); }

    const NodeConfig& config_;
    Network& network_;

private:
    /// A command of the handshake. The first handshake has the steps auth, select, servers and ping, in this
    /// order, as far as they are needed. A later one has the step info or servers.
    enum class Step : std::uint8_t { auth, select, servers, ping, info };

    void connect();
    void close_socket() noexcept;
    Clock::time_point end_of_attempt(std::size_t addresses) const;
    void finish_connecting();
    std::string blame_of_master() const;
    void fail_by_network(int error);
    void fail_by_tls();
    bool fetch_credentials();
    void connected();
    void begin_handshake();
    void take_handshake_reply();
    bool accept_handshake_reply(const detail::Reply& reply);
    std::string quoted_after_auth(std::string_view text) const;
    detail::Recipient recipient() const noexcept { return {config_.quarantine, allows_queue_}; }
    void write_asking();
    void begin_query(Step step, std::initializer_list<detail::Word> words);
    bool take_servers(const detail::Reply& reply);
    void take_redirection(const detail::PendingReply& command);
    void learn_from(const detail::PendingReply& command, bool form_refused) noexcept;
    void keep_refused(const detail::PendingReply& release);
    template <class Action>
    void run_or_break(Action action);
    /// Returns the buffer for the next bytes: plain text with TLS, otherwise the bytes for the socket.
    std::string& outgoing() noexcept { return tls_ ? plain_out_ : out_; }
    /// Returns the buffer for a command, which must not be written before the handshake.
    std::string& outgoing_command() noexcept { return established() ? outgoing() : queued_; }
    void read(Socket::Wait wait);
    void receive(Socket::Wait wait);
    void decrypt(std::string_view cipher);
    void feed(std::string_view plain);
    bool parse_reply();
    void take_reply();

    std::shared_ptr<Resolution> resolution_;
    Clock::time_point since_;
    std::size_t first_address_;
    std::size_t tried_addresses_ = 0;
    Clock::time_point moves_on_at_ = Clock::never();  // when the next address is tried
    std::unique_ptr<Socket> socket_{};
    State state_ = State::resolving;
    int connect_error_ = 0;      // of the last address that could not be connected, an errno
    std::vector<Step> steps_{};  // whose replies the handshake awaits
    Credentials credentials_;
    bool just_connected_ = false;  // true until the next advance()
    bool was_ready_ = false;
    std::string run_id_{};

    std::string out_{};  // bytes for the socket; those before written_ are written
    std::size_t written_ = 0;
    std::string queued_{};  // commands to be written behind the handshake
    bool was_turned_away_ = false;
    bool collects_ = false;
    std::size_t collected_ = 0;         // commands in the buffers since the last write
    std::size_t written_commands_ = 0;  // since take_written()
    bool blocked_ = false;              // the socket has not accepted all bytes of the last write
    std::unique_ptr<TlsSession> tls_{};
    std::string plain_out_{};  // with TLS: plain text that is not yet in out_
    std::string plain_in_{};
    std::size_t tls_answers_ = 0;  // bytes that TLS itself has added to out_ since everything was written

    detail::Reply incoming_{};  // what parser_ parses into
    ReplyParser parser_{incoming_};
    detail::PendingReplies pending_{};

    bool allows_queue_ = true;    // false after the server has refused a key or command of a queue
    bool allows_digests_ = true;  // false after the server has refused EVALSHA
    std::bitset<detail::scripts::all.size()>
        known_{};  // the scripts that the server has run on this connection

    bool subscribed_ = false;
    std::vector<std::string> messages_{};

    std::error_code cause_{};
    std::string detail_{};
};

}  // namespace redlock
