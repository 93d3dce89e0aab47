#include "connection.hpp"

#include "socket.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace redlock {

using wire::Reply;

Connection::Connection(const Endpoint& endpoint, const TlsContext* tls,
                       std::shared_ptr<Resolution> resolution, std::size_t first_address,
                       std::chrono::milliseconds longest_wait, std::chrono::milliseconds quarantine,
                       Clock::time_point now)
    : endpoint_(endpoint),
      tls_context_(tls),
      resolution_(std::move(resolution)),
      longest_wait_(longest_wait),
      quarantine_(quarantine),
      begun_(now),
      first_address_(first_address) {
    if (resolution_->done()) connect();
}

Connection::~Connection() = default;

int Connection::fd() const noexcept {
    if (state_ == State::resolving) return resolution_->fd();
    return parser_ ? parser_->fd() : -1;
}

short Connection::events() const noexcept {
    if (state_ == State::resolving) return POLLIN;
    if (state_ == State::connecting) return POLLOUT;
    return static_cast<short>(POLLIN | (written_ < out_.size() ? POLLOUT : 0));
}

void Connection::advance() {
    if (state_ == State::resolving && resolution_->done()) connect();
    if (state_ == State::connecting) finish_connecting();
    if (state_ == State::resolving || state_ == State::connecting || state_ == State::broken) return;
    flush();
    read(MSG_DONTWAIT);
    flush();  // what reading has given to say: the greeting after a handshake
}

void Connection::wait_for_more() {
    if (ready()) read(0);
}

// ---- Connecting

/// Tries the addresses that are left until one takes the connection, or may yet take it.
void Connection::connect() {
    if (resolution_->addresses().empty()) return break_off(Errc::connection_failed, resolution_->error());
    const auto& addresses = resolution_->addresses();
    while (tried_addresses_ < addresses.size())
        if (connect_to(addresses[(first_address_ + tried_addresses_++) % addresses.size()])) return;
    if (detail_.empty()) detail_ = "no address left to try";
    break_off(Errc::connection_failed, std::move(detail_));
}

bool Connection::connect_to(const Address& address) {
    const int fd = open_socket(address.storage.ss_family);
    if (fd < 0) {
        detail_ = words_of(errno);
        return false;
    }
    parser_.emplace(fd, incoming_);
    state_ = State::connecting;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0) {
        connected();
        return true;
    }
    if (errno == EINPROGRESS || errno == EINTR) return true;
    detail_ = words_of(errno);
    return false;
}

void Connection::finish_connecting() {
    pollfd writable{parser_->fd(), POLLOUT, 0};
    if (::poll(&writable, 1, 0) <= 0) return;
    if (const int error = socket_error(parser_->fd()); error != 0) {
        detail_ = words_of(error);
        return connect();
    }
    connected();
}

void Connection::connected() {
    // From here on the socket blocks, for wait_for_more(); all else says MSG_DONTWAIT.
    make_blocking(parser_->fd(), longest_wait_ / 2);
    if (!tls_context_) return greet();
    state_ = State::securing;
    tls_ = std::make_unique<TlsSession>(*tls_context_);
    if (!tls_->start(out_)) return break_off(Errc::connection_failed, tls_->error());
    flush();
}

// ---- Greeting: AUTH and SELECT where the endpoint asks for them, and a PING, so that a connection which is
// ready has a server behind it that answers. All are written at once and answered in order.

Connection::Step Connection::step_after(Step step) const noexcept {
    if (step == Step::server) return Step::replication;
    if (step == Step::auth && endpoint_.database != 0) return Step::select;
    return step == Step::ping || step == Step::replication ? Step::done : Step::ping;
}

void Connection::greet() {
    state_ = State::greeting;
    const bool anonymous = endpoint_.username.empty() && endpoint_.password.empty();
    step_ = anonymous ? step_after(Step::auth) : Step::auth;
    for (auto step = step_; step != Step::done; step = step_after(step)) {
        ++owed_;
        if (step == Step::select)
            wire::append(outgoing(), {"SELECT", std::to_string(endpoint_.database)});
        else if (step == Step::ping)
            wire::append(outgoing(), {"PING"});
        else if (endpoint_.username.empty())
            wire::append(outgoing(), {"AUTH", endpoint_.password});
        else
            wire::append(outgoing(), {"AUTH", endpoint_.username, endpoint_.password});
    }
    flush();
}

/// Beside the greeting, and only where a command needs it: which run of the server this is, and that it is a
/// master.
void Connection::identify_for(const Command& command) {
    if (!ready() || !run_id_.empty() || !wire::needs_run_id(command, recipient())) return;
    state_ = State::greeting;
    step_ = Step::server;
    awaited_ = 0;  // what comes next answers nothing
    wire::append(outgoing(), {"INFO", "server"});
    wire::append(outgoing(), {"INFO", "replication"});
    owed_ += 2;
    flush();
}

/// Whether the reply to a step of the greeting lets us in. A user that may not PING is let in all the same:
/// the refusal, too, shows that the server answers.
bool Connection::introduces(const Reply& reply) {
    if (step_ == Step::server) run_id_ = wire::line_of_info(reply.text, "run_id:");
    if (step_ == Step::server) return reply.kind == Reply::Kind::text && !run_id_.empty();
    if (step_ == Step::replication)
        return reply.kind == Reply::Kind::text && wire::line_of_info(reply.text, "role:") == "master";
    return reply.kind == Reply::Kind::status || (step_ == Step::ping && reply.is_error("NOPERM"));
}

void Connection::take_greeting(const Reply& reply) {
    if (!introduces(reply)) {
        const bool replica = step_ == Step::replication && reply.kind == Reply::Kind::text;
        if (replica) return break_off(Errc::read_only, "its role is not master");
        const bool error = reply.kind == Reply::Kind::error;
        auto cause = error ? wire::cause_of(reply.first_word()) : Errc::unexpected_reply;
        // "ERR AUTH called without any password configured", "ERR invalid password": of old servers.
        if (error && step_ == Step::auth && cause == Errc::server_error) cause = Errc::authentication_failed;
        // The server may repeat what it was sent: after AUTH, only its first word is safe to show (rule D11).
        auto words = step_ == Step::auth ? reply.first_word() : std::string_view{reply.text};
        return break_off(cause, quoted(words));
    }
    step_ = step_after(step_);
    if (step_ != Step::done) return;
    state_ = State::ready;
    was_ready_ = true;
}

std::string Connection::quoted(std::string_view words) const {
    const auto& password = endpoint_.password;
    const bool repeats = !password.empty() && words.find(password) != words.npos;
    // A part of it is as bad, where the words are few enough to be one; "ERR" is not.
    const bool is_part =
        words.size() > 3 && words.find(' ') == words.npos && password.find(words) != password.npos;
    return repeats || is_part ? "its words repeat the password" : wire::printable(words);
}

// ---- Commands

void Connection::send(const Command& command) {
    // By its digest only where the server is known to have the script and nothing is in the way: what is
    // written behind late replies may never be looked at again, so it must work without a second try.
    const bool short_form = owed_ == 0 && knows_script_of(command);
    send(command, short_form ? wire::ScriptForm::by_sha1 : wire::ScriptForm::whole);
}

void Connection::send_whole(const Command& command) {
    send(command, wire::ScriptForm::whole);
}

void Connection::send(const Command& command, wire::ScriptForm form) {
    awaited_ = 1;
    answers_.resize(std::max(answers_.size(), awaited_));
    write(command, form);
    flush();
}

/// In order: what the first of them brings with it, the next can call by its digest. Where it is unknown all
/// the same, those votes are lost, and the next round is wiser.
void Connection::send_all(std::span<const Command> commands) {
    awaited_ = commands.size();
    answers_.resize(std::max(answers_.size(), awaited_));
    for (const auto& command : commands) {
        const bool by_sha1 = knows_script_of(command);
        write(command, by_sha1 ? wire::ScriptForm::by_sha1 : wire::ScriptForm::whole);
        if (last_script_) known_[wire::number_of(last_script_)] = true;
    }
    flush();
}

void Connection::ask(std::span<const std::string_view> words) {
    parser_->admit_lists();
    awaited_ = 1;
    answers_.resize(std::max(answers_.size(), awaited_));
    last_script_ = nullptr;
    answer_by_sha1_ = false;
    used_ = true;
    wire::append(outgoing(), words);
    ++owed_;
    flush();
}

bool Connection::knows_script_of(const Command& command) const noexcept {
    const auto* const script = wire::script_of(command, recipient());
    return script && known_[wire::number_of(script)];
}

void Connection::write(const Command& command, wire::ScriptForm form) {
    if (acquires(command.verb)) set_owner_ = command.owner;
    if (command.verb == Verb::compare_and_delete && carries(command.owner)) set_owner_.clear();
    last_script_ = wire::script_of(command, recipient());
    used_ = true;
    answer_by_sha1_ = last_script_ && form == wire::ScriptForm::by_sha1;
    reach_ = std::max(owed_ == 0 ? std::chrono::milliseconds{} : reach_, command.ttl);
    wire::append(outgoing(), command, recipient(), form);
    ++owed_;
}

void Connection::flush() {
    if (broken()) return;
    if (!plain_out_.empty()) {
        if (!tls_->send(plain_out_, out_)) return break_off(Errc::connection_failed, tls_->error());
        plain_out_.clear();
    }
    while (written_ < out_.size()) {
        const auto sent = ::send(parser_->fd(), out_.data() + written_, out_.size() - written_,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (sent < 0) {
            const int error = errno;
            read(MSG_DONTWAIT);  // what the server said before it hung up tells more
            if (!broken()) break_off(Errc::connection_failed, words_of(error));
            return;
        }
        written_ += static_cast<std::size_t>(sent);
    }
    out_.clear();
    written_ = 0;
}

void Connection::read(int flags) {
    if (broken() || !receive(flags)) return;
    while (!broken() && parse_reply()) take_reply();
    // More than any reply of ours needs: a server that streams without an end must not fill our memory.
    constexpr std::size_t most_unparsed = 65'536;
    if (!broken() && parser_->unparsed() > most_unparsed)
        break_off(Errc::unexpected_reply, "a reply without an end");
}

/// Hands hiredis what has come in; false when there is nothing new to parse.
bool Connection::receive(int flags) {
    std::array<char, 16'384> bytes;
    const auto length = ::recv(parser_->fd(), bytes.data(), bytes.size(), flags);
    if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
    if (length <= 0) {
        break_off(Errc::connection_failed, length == 0 ? "closed by the server" : words_of(errno));
        return false;
    }
    const std::string_view received{bytes.data(), static_cast<std::size_t>(length)};
    return tls_ ? decrypt(received) : feed(received);
}

bool Connection::decrypt(std::string_view cipher) {
    plain_in_.clear();
    if (!tls_->receive(cipher, plain_in_, out_)) {
        const auto cause = tls_->rejected() ? Errc::authentication_failed : Errc::connection_failed;
        auto reason = tls_->error();
        flush();  // the alert that tells the server why
        if (!broken()) break_off(cause, std::move(reason));
        return false;
    }
    if (state_ == State::securing && tls_->established()) greet();
    return !broken() && !plain_in_.empty() && feed(plain_in_);
}

bool Connection::feed(std::string_view plain) {
    if (parser_->feed(plain)) return true;
    break_off(Errc::connection_failed, "no memory for its replies");
    return false;
}

/// Parses one more reply out of what was read; false while it is not complete.
bool Connection::parse_reply() {
    const auto progress = parser_->next();
    if (progress == ReplyParser::Progress::nonsense)
        break_off(Errc::unexpected_reply, "not an answer in the Redis protocol");
    return progress == ReplyParser::Progress::complete;
}

void Connection::take_reply() {
    if (owed_ == 0) return break_off(Errc::unexpected_reply, "a reply that nobody asked for");
    --owed_;
    if (state_ == State::greeting) return take_greeting(incoming_);
    if (owed_ >= awaited_) return;  // late, to a command before those awaited
    if (owed_ == 0) set_owner_.clear();
    if (incoming_.is_error("NOSCRIPT"))
        known_.reset();
    else if (last_script_ && owed_ == 0)
        known_[wire::number_of(last_script_)] = incoming_.kind != Reply::Kind::error;
    std::swap(answers_[awaited_ - owed_ - 1], incoming_);
}

bool Connection::gone_stale() const noexcept {
    char byte = 0;
    const auto seen = ::recv(parser_->fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return seen >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void Connection::break_off(Errc cause, std::string detail) {
    state_ = State::broken;
    cause_ = cause;
    detail_ = std::move(detail);
    if (parser_) drop_unsent(parser_->fd());
    parser_.reset();
}

}  // namespace redlock
