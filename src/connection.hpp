// One connection to one node: a socket of our own, and hiredis to parse what comes in.
//
// A connection owes a counted number of replies and gives them back in the order of the commands, so that no
// reply is ever taken for another command's (rule D1): only the replies to what was sent last can become
// answers, those before are dropped. One whose replies are late is kept and read on later. At any doubt it
// is broken, for good; a broken one is thrown away, never revived (rule D4).
//
//     resolving → connecting → [securing →] greeting → ready         each of them → broken
//
// None of its functions blocks, but for wait_for_more().
#pragma once

#include <redlock/clock.hpp>
#include <redlock/endpoint.hpp>
#include <redlock/nodes.hpp>

#include "reply.hpp"
#include "reply_parser.hpp"
#include "request.hpp"
#include "resolution.hpp"
#include "tls.hpp"

#include <algorithm>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace redlock {

class Connection {
public:
    enum class State : std::uint8_t { resolving, connecting, securing, greeting, ready, broken };

    /// Starts connecting; `endpoint` must outlive it, and `tls`, which is null for a plain connection. Of
    /// several addresses it tries the one numbered `first_address` first.
    Connection(const Endpoint& endpoint, const TlsContext* tls, std::shared_ptr<Resolution> resolution,
               std::size_t first_address, std::chrono::milliseconds longest_wait,
               std::chrono::milliseconds quarantine, Clock::time_point now);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // ---- For poll().
    int fd() const noexcept;
    short events() const noexcept;

    /// Goes on as far as the socket allows: connects, greets, writes, reads.
    void advance();

    /// When ready: reads what comes next, for which it waits half of `longest_wait`, and up to two of the
    /// kernel's ticks (10 ms each at most) longer; a signal ends the wait. One system call in place of the
    /// two of poll() and read, for who waits for nobody else meanwhile.
    void wait_for_more();

    State state() const noexcept { return state_; }
    bool ready() const noexcept { return state_ == State::ready; }
    bool broken() const noexcept { return state_ == State::broken; }
    /// Whether it is ready or was before it broke.
    bool was_ready() const noexcept { return was_ready_; }

    /// Whether a command may be written already, behind the greeting.
    bool greeting() const noexcept { return state_ == State::greeting; }

    /// Whether a command was ever written on it.
    bool used() const noexcept { return used_; }

    /// When it was begun.
    Clock::time_point begun() const noexcept { return begun_; }

    /// What the server said, as a report may show it: never with the password (rule D11).
    std::string quoted(std::string_view words) const;

    /// Replies that are still to come.
    std::size_t owed() const noexcept { return owed_; }

    // ---- When ready, or greeting.

    /// Asks who the server is, where `command` has to know that; it is ready again when the server has said
    /// so.
    void identify_for(const Command& command);

    /// Which run of which server this is; empty before it was asked.
    const std::string& run_id() const noexcept { return run_id_; }

    /// Sends `command` behind whatever is still under way; from then on a byte of it may reach the server.
    /// Its reply becomes the answer.
    void send(const Command& command);

    /// Sends several in one go, one behind the other. Their replies become the answers, in order.
    void send_all(std::span<const Command> commands);

    /// Whether the answer is that the server does not know the script by its digest (rule D6); then
    /// send_whole() sends it whole.
    bool script_is_unknown() const noexcept {
        return answer_by_sha1_ && answer() && answer()->is_error("NOSCRIPT");
    }
    /// Whether the last command was a script.
    bool scripted() const noexcept { return last_script_ != nullptr; }
    void send_whole(const Command& command);

    /// Sends a command of plain words that is none of a lock's: see Inquiry. From then on a list of up to 16
    /// texts and numbers is a reply, too.
    void ask(std::span<const std::string_view> words);

    /// The reply to the last command sent, once it is there.
    const wire::Reply* answer() const noexcept { return answers().empty() ? nullptr : answers_.data(); }

    /// The replies to what was sent last, as far as they have come.
    std::span<const wire::Reply> answers() const noexcept {
        return {answers_.data(), awaited_ - std::min(awaited_, owed_)};
    }

    /// Who signed the SET that is under way here and was not released yet; empty if there is none.
    const std::string& unreleased() const noexcept { return set_owner_; }

    /// Whether a SET signed by `owner` is under way here that was not released yet: its release belongs here,
    /// behind it (rule B5).
    bool carries(std::string_view owner) const noexcept { return has_unreleased() && set_owner_ == owner; }
    bool has_unreleased() const noexcept { return !set_owner_.empty(); }

    /// The address to try next, should this one turn out to be dead.
    std::size_t next_address() const noexcept { return first_address_ + tried_addresses_; }

    /// How long a key can live on that a command still owed may have made or lengthened.
    std::chrono::milliseconds reach() const noexcept { return reach_; }

    /// Whether the server has closed it, or said something nobody asked for, since it was last used.
    bool gone_stale() const noexcept;

    /// Breaks it: its replies are not to be trusted, or not wanted any more. What the kernel has not sent yet
    /// is dropped, where a plain close would go on sending it for a long time.
    void break_off(Errc cause, std::string detail);

    // ---- When broken.
    std::error_code cause() const noexcept { return cause_; }
    const std::string& detail() const noexcept { return detail_; }

private:
    enum class Step : std::uint8_t { auth, select, ping, server, replication, done };

    void connect();
    bool connect_to(const Address& address);
    void finish_connecting();
    void connected();
    void greet();
    void take_greeting(const wire::Reply& reply);
    bool introduces(const wire::Reply& reply);
    wire::Recipient recipient() const noexcept { return {run_id_, quarantine_}; }
    Step step_after(Step step) const noexcept;
    void send(const Command& command, wire::ScriptForm form);
    void write(const Command& command, wire::ScriptForm form);
    bool knows_script_of(const Command& command) const noexcept;
    std::string& outgoing() noexcept { return tls_ ? plain_out_ : out_; }
    void flush();
    void read(int flags);
    bool receive(int flags);
    bool decrypt(std::string_view cipher);
    bool feed(std::string_view plain);
    bool parse_reply();
    void take_reply();

    const Endpoint& endpoint_;
    const TlsContext* tls_context_;
    std::shared_ptr<Resolution> resolution_;
    std::chrono::milliseconds longest_wait_;
    std::chrono::milliseconds quarantine_;
    Clock::time_point begun_;
    std::size_t first_address_;
    std::size_t tried_addresses_ = 0;
    State state_ = State::resolving;
    Step step_ = Step::auth;
    bool was_ready_ = false;
    std::string run_id_{};

    std::string out_{};  // bytes to write, from written_ on
    std::size_t written_ = 0;
    std::unique_ptr<TlsSession> tls_{};
    std::string plain_out_{};  // with TLS: what is not yet in out_
    std::string plain_in_{};

    wire::Reply incoming_{};  // what parser_ parses into
    std::optional<ReplyParser> parser_{};
    std::vector<wire::Reply> answers_{};  // room for those awaited, kept for the next
    std::size_t awaited_ = 0;             // how many of the replies, the last ones, are answers
    bool used_ = false;
    bool answer_by_sha1_ = false;  // the last command named its script by the digest
    std::chrono::milliseconds reach_{};
    std::size_t owed_ = 0;

    std::string set_owner_{};  // of the SET that is neither answered nor released; empty if there is none
    const wire::Script* last_script_ = nullptr;
    std::bitset<wire::scripts.size()> known_{};  // the scripts that the server has run on this connection

    std::error_code cause_{};
    std::string detail_{};
};

}  // namespace redlock
