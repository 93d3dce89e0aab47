// One connection to one node: bytes over a Socket, replies through hiredis.
//
//     state       | what holds                                    | left by
//     ------------+-----------------------------------------------+----------------------------------
//     resolving   | the addresses of the name are not known yet   | advance() → connecting
//     connecting  | TCP is connecting to one of the addresses     | advance() → securing, handshaking,
//                 |                                               | connecting to the next address
//     securing    | the TLS handshake is under way                | advance() → handshaking
//     handshaking | AUTH, SELECT, PING are sent; commands may be  | advance(), their last reply →
//                 | written behind them                           | ready
//     ready       | the server has answered                       | fetch_run_id() → handshaking
//     broken      | for good: never revived (rule D4)             |
//
// Every state can turn into broken, by fail(). What is sent before the handshake is queued, and is written
// right behind it. PendingReplies knows which reply answers which command; one whose replies are late is kept
// and read on later. None of the functions blocks, but for receive_or_wait().
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/command_encoding.hpp>
#include <redlock/detail/pending_replies.hpp>
#include <redlock/detail/reply.hpp>
#include <redlock/nodes.hpp>

#include "os/network.hpp"
#include "redis/node_config.hpp"
#include "redis/reply_parser.hpp"

#include <bitset>
#include <chrono>
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

class Connection {
public:
    enum class State : std::uint8_t { resolving, connecting, securing, handshaking, ready, broken };

    /// Starts connecting; `config` and `network` must outlive it. Of several addresses it tries the one
    /// numbered `first_address` first.
    Connection(const NodeConfig& config, Network& network, std::shared_ptr<Resolution> resolution,
               std::size_t first_address, Clock::time_point now);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    /// What to wait for.
    PollEntry poll_entry() const noexcept;

    /// Goes on as far as the socket allows: connects, writes, reads.
    void advance();

    /// When ready: reads what comes next, for which it waits half of the node's budget, and up to two of the
    /// kernel's ticks (10 ms each at most) longer; a signal ends the wait. One system call in place of the
    /// two of poll() and read, where no other reply is waited for.
    void receive_or_wait();

    bool ready() const noexcept { return state_ == State::ready; }
    bool broken() const noexcept { return state_ == State::broken; }
    bool handshaking() const noexcept { return state_ == State::handshaking; }
    /// Whether bytes can be written to the server behind its handshake.
    bool greeted() const noexcept { return ready() || handshaking(); }
    /// Whether it is ready or was before it broke.
    bool was_ready() const noexcept { return was_ready_; }
    /// Whether a command was ever written on it.
    bool used() const noexcept { return used_; }
    /// When it was begun, or last became idle.
    Clock::time_point since() const noexcept { return since_; }
    void became_idle(Clock::time_point now) noexcept { since_ = now; }
    /// How its server was found.
    const Resolution& resolution() const noexcept { return *resolution_; }

    /// The server's words as a report may show them: never with the password (rule D11).
    std::string quoted(std::string_view words) const;

    const detail::PendingReplies& pending() const noexcept { return pending_; }

    // ---- When ready, or handshaking.

    /// Asks which run of which server this is, where two nodes with one server would be a danger to
    /// `command`; it is ready again when the server has answered.
    void fetch_run_id(const Command& command);

    /// Which run of which server this is; empty before it was asked.
    const std::string& run_id() const noexcept { return run_id_; }

    /// Sends the commands in one go behind whatever is still pending; from then on a byte of them may reach
    /// the server. Their replies become the answers, in order. Without `awaited`, nobody is going to look at
    /// them. Before the handshake the commands are queued: no byte of them can reach the server until it is
    /// handshaking.
    void send(std::span<const Command> commands, bool awaited = true);
    /// Whether the socket has not taken all of what was sent.
    bool unsent() const noexcept {
        return !broken() && (!queued_.empty() || written_ < out_.size() || !plain_out_.empty());
    }

    /// Whether the only answer is that the server does not know the script by its digest (rule D6), or does
    /// not let us use the queue of waiters; then resend() sends it whole, or without the queue.
    bool must_resend() const noexcept;
    void resend(const Command& command);

    /// The round of the release that was sent last does not wait for it any longer. Should its form turn
    /// out to be refused, repeat_release() sends it whole and without the queue, once nothing is pending:
    /// false if there is nothing to repeat.
    void keep_release(const Command& command);
    bool repeat_release();

    /// Whether the last command was a script.
    bool scripted() const noexcept { return last_script_ != nullptr; }

    /// Sends a command of plain words that is none of a lock's: see AdminConnection. From then on a list of
    /// up to 16 texts and numbers is a reply, too.
    void ask(std::span<const std::string_view> words);

    /// Listens to `channel`: answered by one reply. From then on nothing else can be sent.
    void subscribe(std::string_view channel);
    /// The last message that has come on it since the last call; empty if none.
    std::string take_message() { return std::exchange(message_, {}); }

    /// The replies to what was sent last, as far as they have come.
    std::span<const detail::Reply> answers() const noexcept { return {answers_.data(), pending_.answered()}; }

    /// The address to try next, should this one turn out to be dead.
    std::size_t next_address() const noexcept { return first_address_ + tried_addresses_; }

    /// Whether the server has closed it, or sent something unasked, since it was last used.
    bool gone_stale() const noexcept { return socket_->has_input(); }

    /// Breaks it: its replies are not to be trusted, or not wanted any more. What the kernel has not sent yet
    /// is dropped, where a plain close would go on sending it for a long time.
    void fail(std::error_code cause, std::string detail);

    // ---- When broken.
    std::error_code cause() const noexcept { return cause_; }
    /// A copy: what it is told to may end the connection.
    std::string detail() const { return detail_; }

private:
    /// Of the handshake, in this order.
    enum class Step : std::uint8_t { auth, select, ping, server, done };

    void connect();
    bool connect_to(const Address& address);
    void finish_connecting();
    void connected();
    void begin_handshake();
    void take_handshake_reply();
    bool accept_handshake_reply(const detail::Reply& reply);
    Step step_after(Step step) const noexcept;
    detail::Recipient recipient() const noexcept { return {config_.quarantine, allows_queue_}; }
    void write(const Command& command, detail::ScriptForm form);
    template <class Action>
    void run_or_break(Action action);
    void await_answers(std::size_t commands);
    bool knows_script_of(const Command& command) const noexcept;
    std::string& outgoing() noexcept { return tls_ ? plain_out_ : out_; }
    std::string& outgoing_command() noexcept { return greeted() ? outgoing() : queued_; }
    void flush();
    void read(Socket::Wait wait);
    bool receive(Socket::Wait wait);
    bool decrypt(std::string_view cipher);
    bool feed(std::string_view plain);
    bool parse_reply();
    void take_reply();

    const NodeConfig& config_;
    Network& network_;
    std::shared_ptr<Resolution> resolution_;
    Clock::time_point since_;
    std::size_t first_address_;
    std::size_t tried_addresses_ = 0;
    std::unique_ptr<Socket> socket_{};
    State state_ = State::resolving;
    Step step_ = Step::auth;
    bool just_connected_ = false;  // since the last advance()
    bool was_ready_ = false;
    bool used_ = false;
    std::string run_id_{};

    std::string out_{};  // bytes to write, from written_ on
    std::size_t written_ = 0;
    std::string queued_{};  // the commands that go behind the handshake
    std::unique_ptr<TlsSession> tls_{};
    std::string plain_out_{};  // with TLS: what is not yet in out_
    std::string plain_in_{};

    detail::Reply incoming_{};  // what parser_ parses into
    ReplyParser parser_{incoming_};
    detail::PendingReplies pending_{};
    std::vector<detail::Reply> answers_{};  // room for those awaited, kept for the next

    const detail::Script* last_script_ = nullptr;
    bool allows_queue_ = true;                     // until it refuses a key or a command of one
    bool uses_queue_ = false;                      // the last command had its form for waiters
    bool by_sha1_ = false;                         // the last command named its script by the digest
    std::bitset<detail::scripts.size()> known_{};  // the scripts that the server has run on this connection

    std::size_t late_ = 0;  // replies that come before those of a handshake

    bool subscribed_ = false;
    std::string message_{};

    std::string kept_release_{};         // the bytes of it, whole
    std::size_t replies_before_it_ = 0;  // that are to come before its script is known to be unknown

    std::error_code cause_{};
    std::string detail_{};
};

}  // namespace redlock
