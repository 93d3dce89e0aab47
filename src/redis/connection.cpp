#include "connection.hpp"

#include "../round/connection_choice.hpp"
#include "../round/write_choice.hpp"
#include "../wire/causes.hpp"
#include "redis_cluster.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <new>

namespace redlock {
namespace {

using namespace std::chrono_literals;
using detail::PendingReply;
using detail::Reply;

/// How long the releases that a server refuses for now are left alone.
constexpr auto refusal_pause = 1s;

}  // namespace

Connection::Connection(const NodeConfig& config, Network& network, Server::Addresses found,
                       Clock::time_point now)
    : config_(config),
      network_(network),
      resolution_(std::move(found.resolution)),
      since_(now),
      first_address_(found.first),
      credentials_{config.endpoint.username, config.endpoint.password} {
    if (resolution_->done()) connect();
}

int Connection::fd() const noexcept {
    if (state_ == State::resolving) return resolution_->fd();
    return socket_ ? socket_->fd() : -1;
}

PollEntry Connection::poll_entry() const noexcept {
    if (state_ == State::resolving || !socket_) return {.fd = fd(), .unsent = unsent()};
    const bool connecting = state_ == State::connecting;
    const bool ended = tls_ && tls_->failed();  // advance() must find that out, even if no byte comes
    return {.socket = socket_.get(),
            .fd = socket_->fd(),
            .writes = connecting || ended || (collects_ ? blocked_ : written_ < out_.size()),
            .reads = !connecting,
            .unsent = unsent(),
            .until = connecting ? moves_on_at_ : Clock::never()};
}

void Connection::advance() {
    if (state_ == State::resolving && resolution_->done()) connect();
    if (state_ == State::connecting) finish_connecting();
    if (state_ == State::resolving || state_ == State::connecting || state_ == State::broken) return;
    if (std::exchange(just_connected_, false)) return;  // no reply can have arrived yet
    if (tls_ && tls_->failed()) return fail_by_tls();   // its end came behind a reply
    flush();
    read(Socket::Wait::no);
    flush();  // sends what reading has produced, for example the handshake after TLS
}

void Connection::blocking_receive() {
    if (!ready()) return;
    read(Socket::Wait::yes);
    flush();  // a late reply may have shown that a release must be sent again
}

// ---- Connecting

/// Tries the remaining addresses until one accepts the connection or may still accept it.
void Connection::connect() {
    if (resolution_->addresses().empty()) return fail(resolution_->cause(), resolution_->error());
    const auto& addresses = resolution_->addresses();
    while (tried_addresses_ < addresses.size()) {
        const auto& address = addresses[(first_address_ + tried_addresses_++) % addresses.size()];
        auto socket = network_.connect(address, config_.node_timeout / 2, connect_error_);
        close_socket();  // after connect(), so that the new socket has another number
        socket_ = std::move(socket);
        state_ = socket_ ? State::connecting : State::resolving;
        moves_on_at_ = end_of_attempt(addresses.size());
        if (socket_) return finish_connecting();
    }
    fail_by_network(connect_error_);
}

/// Returns a text that blames the server that the Sentinels have named, with its address. Returns an empty
/// text if there are no Sentinels, or if they have not named it yet.
std::string Connection::blame_of_master() const {
    if (!config_.has_sentinels() || tried_addresses_ == 0) return {};
    const auto& addresses = resolution_->addresses();
    return "the Sentinels answer, and the master that they name, " +
           text_of(addresses[present_address() % addresses.size()]) + ", does not";
}

std::string Connection::unfinished_step() const {
    const std::string connecting = "while connecting";
    const auto hint = [](std::string_view text) { return "; " + std::string{text}; };
    if (state_ == State::resolving && !config_.has_sentinels())
        return connecting + ": the name of the host is not resolved yet";
    if (state_ == State::resolving) {
        const bool use_tls =
            std::ranges::any_of(*config_.sentinels, [](const auto& it) { return it.tls != nullptr; });
        return connecting + ": the Sentinels have not named a master yet" +
               (use_tls ? hint(detail::hints::without_tls) : "");
    }
    const auto master = blame_of_master();
    return connecting + (master.empty() ? "" : ": " + master) +
           (state_ == State::securing
                ? ": no reply to the beginning of TLS" + hint(detail::hints::without_tls)
                : "");
}

/// Fails because the network or the other side has ended the connection. A server that expects TLS does so
/// when it reads the first command without it. `error` is an errno, or 0 if the stream has ended.
void Connection::fail_by_network(int error) {
    auto detail = error == 0 ? "closed by the server" : std::generic_category().message(error);
    if (const auto master = was_ready_ ? std::string{} : blame_of_master(); !master.empty())
        detail = master + ": " + detail;
    const bool over_tcp = config_.endpoint.unix_socket.empty();
    if (state_ == State::handshaking && !was_ready_ && over_tcp && !config_.tls)
        detail += "; " + std::string{detail::hints::with_tls};
    fail(cause_of_errno(error), std::move(detail));
}

bool Connection::hangs(Clock::time_point now) const noexcept {
    const bool is_made = state_ != State::resolving && state_ != State::connecting;
    return !is_made && now - since_ >= detail::max_connecting;
}

/// Without memory for the reason, the connection is broken nevertheless.
void Connection::fail_by_tls() {
    std::string reason;
    run_or_break([&] { reason = tls_->error(); });
    fail(Errc::connection_failed, std::move(reason));
}

/// Returns when to leave an address that neither accepts the connection nor refuses it. The last address has
/// the rest of the time. An address may be good, and only too slow for its share. Therefore, when every
/// address was tried in vain, the next connections try one address each, and after that all of them again.
Clock::time_point Connection::end_of_attempt(std::size_t addresses) const {
    const auto untried = addresses - tried_addresses_;
    if (untried == 0 || first_address_ / addresses % 2 != 0) return Clock::never();
    const auto time = std::min<Clock::duration>(config_.node_timeout, detail::max_connecting);
    return network_.clock().now() + time / static_cast<int>(untried + 2);
}

void Connection::finish_connecting() {
    const auto result = socket_->connect_result();
    if (!result && (moves_on_at_ == Clock::never() || network_.clock().now() < moves_on_at_)) return;
    if (result == 0) return connected();
    connect_error_ = result.value_or(ETIMEDOUT);
    connect();
}

void Connection::connected() {
    just_connected_ = true;
    if (!config_.tls) return begin_handshake();
    state_ = State::securing;
    run_or_break([&] { tls_ = std::make_unique<TlsSession>(*config_.tls, out_); });
    if (tls_->failed()) return fail_by_tls();
    flush();
}

// ---- The handshake: AUTH if the endpoint has a user or a password, SELECT if its database is not 0, CLUSTER
// NODES if the list of servers is needed, and a PING, which shows that the server answers. All are written at
// once.

void Connection::begin_handshake() {
    if (!fetch_credentials()) return;
    const auto& username = credentials_.username;
    const auto& password = credentials_.password;
    state_ = State::handshaking;
    const auto add = [this](Step step, std::initializer_list<detail::Word> words) {
        pending_.add_first();
        steps_.push_back(step);
        detail::append(outgoing(), words);
    };
    run_or_break([&] {
        if (!username.empty())
            add(Step::auth, {"AUTH", username, password});
        else if (!password.empty())
            add(Step::auth, {"AUTH", password});
        if (config_.endpoint.database != 0)
            add(Step::select, {"SELECT", std::to_string(config_.endpoint.database)});
        if (config_.cluster && config_.cluster->begin_refresh(network_.clock().now()))
            add(Step::servers, {"CLUSTER", "NODES"});
        add(Step::ping, {"PING"});
        outgoing() += std::exchange(queued_, {});
    });
    flush();
}

/// Calls NodesOptions::credentials. Returns false if it has thrown an exception, and the connection has
/// failed.
bool Connection::fetch_credentials() {
    if (!config_.credentials) return true;
    std::string problem = "an exception";
    try {
        credentials_ = config_.credentials(config_.endpoint.name());
        return true;
    } catch (const std::bad_alloc&) {
        fail(Errc::connection_failed, {});
        throw;
    } catch (const std::exception& error) {
        problem = detail::printable(error.what());
    } catch (...) {  // NOLINT(bugprone-empty-catch): says nothing
    }
    fail(Errc::connection_failed, "no credentials: " + problem);
    return false;
}

/// Sends INFO. The first handshake does not, because few commands need the run id.
void Connection::fetch_run_id(const Command& command) {
    if (!ready() || !run_id_.empty() || !detail::needs_run_id(command, recipient())) return;
    begin_query(Step::info, {"INFO", "server"});
}

void Connection::fetch_servers(Clock::time_point now) {
    if (!ready() || !config_.cluster || !config_.cluster->begin_refresh(now)) return;
    begin_query(Step::servers, {"CLUSTER", "NODES"});
}

void Connection::begin_query(Step step, std::initializer_list<detail::Word> words) {
    state_ = State::handshaking;
    run_or_break([&] {
        steps_.push_back(step);
        pending_.add_other(nullptr).handshake = true;
        detail::append(outgoing(), words);
    });
    flush();
}

/// Takes the reply to CLUSTER NODES. Without the permission, the servers are found by MOVED.
bool Connection::take_servers(const Reply& reply) {
    if (reply.kind == Reply::Kind::text) config_.cluster->learn(reply.text, config_.endpoint.host);
    const bool refused = reply.is_error("NOPERM") || detail::is_unknown_command(reply);
    if (refused) config_.cluster->cannot_learn();
    return reply.kind == Reply::Kind::text || refused;
}

/// Returns true if the reply completes this step of the handshake. The error of a user who may not call PING,
/// or of a server without this command, also shows that the server answers. So does MISCONF, the error of a
/// server that could not save its data. This server reads, but does not write.
bool Connection::accept_handshake_reply(const Reply& reply) {
    const auto step = steps_.front();
    if (step == Step::info) run_id_ = detail::line_of_info(reply.text, "run_id:");
    if (step == Step::info) return reply.kind == Reply::Kind::text && !run_id_.empty();
    if (step == Step::servers) return take_servers(reply);
    const bool refused =
        reply.is_error("NOPERM") || reply.is_error("MISCONF") || detail::is_unknown_command(reply);
    return reply.kind == Reply::Kind::status || (step == Step::ping && refused);
}

void Connection::take_handshake_reply() {
    const auto& reply = incoming_;
    if (!accept_handshake_reply(reply)) {
        const bool error = reply.kind == Reply::Kind::error;
        auto cause = error ? detail::cause_of(reply) : Errc::unexpected_reply;
        // Old servers answer "ERR wrong number of arguments" to a user name.
        const bool to_auth = steps_.front() == Step::auth;
        if (error && to_auth && cause == Errc::server_error) cause = Errc::authentication_failed;
        // The server may repeat what it has received, unless it has not read the password.
        was_turned_away_ = detail::has_too_many_clients(reply);
        const bool may_repeat = to_auth && !was_turned_away_;
        return fail(cause, may_repeat ? quoted_after_auth(reply.text) : quoted(reply.text));
    }
    steps_.erase(steps_.begin());
    if (!steps_.empty()) return;
    state_ = State::ready;
    was_ready_ = true;
}

/// The first word is quoted as any other text, because it may itself be the password.
std::string Connection::quoted_after_auth(std::string_view text) const {
    const auto first_word = text.substr(0, text.find(' '));
    auto quoted_word = quoted(first_word);
    if (quoted_word != detail::printable(first_word)) return quoted_word;
    return detail::printable(detail::shown_after_auth(text, credentials_.password));
}

std::string Connection::quoted(std::string_view text) const {
    const auto& password = credentials_.password;
    const bool repeats = !password.empty() && text.find(password) != text.npos;
    // A single word may be a part of the password, except for "ERR".
    const bool is_part =
        text.size() > 3 && text.find(' ') == text.npos && password.find(text) != password.npos;
    return repeats || is_part ? "the text contains the password" : detail::printable(text);
}

// ---- Commands

/// A command by digest may need a second try. So a digest is sent only if the reply is awaited, and will
/// probably be read before the round ends. This is so if no other reply is pending, or if the connection
/// collects commands, because it is then read all the time.
///
/// Of several commands with one script, only the first brings the script whole, unless the server refuses
/// digests.
void Connection::send(std::span<const Command> commands, const detail::Requester& requester, bool awaited,
                      detail::CommandForEachNode* for_each_node, bool asking) {
    const bool may_retry = awaited && allows_digests_ && (collects_ || pending_.none()) && !asking;
    run_or_break([&] {
        for (const auto& command : commands) {
            if (asking) write_asking();
            auto& sent = pending_.add(command, &requester);
            sent.asking = asking;
            if (command.hold_remaining > command.hold_remaining.zero())
                sent.hold_until = network_.clock().now() + command.hold_remaining;
            sent.script = detail::script_of(command, recipient());
            sent.by_sha1 = may_retry && sent.script && known_[detail::number_of(sent.script)];
            sent.uses_queue = detail::uses_queue(command, recipient()) &&
                              detail::effect_of(command) != detail::KeyEffect::enqueues;
            if (established()) ++collected_;
            const auto form = sent.by_sha1 ? detail::ScriptForm::by_sha1 : detail::ScriptForm::whole;
            if (for_each_node)
                for_each_node->append(outgoing_command(), command, recipient(), form);
            else
                detail::append(outgoing_command(), command, recipient(), form);
            if (sent.script && commands.size() > 1) known_[detail::number_of(sent.script)] = true;
        }
    });
    flush();
}

void Connection::repeat(const PendingReply& release) {
    run_or_break([&] {
        if (release.asking) write_asking();
        const auto& sent = pending_.add_repetition(release);
        if (established()) ++collected_;
        detail::append(outgoing_command(), sent.repetition(network_.clock().now()), recipient(),
                       detail::ScriptForm::whole);
    });
}

void Connection::send_words(std::span<const std::string_view> words) {
    parser_.admit_lists();
    pending_.stop_awaiting(*this);  // the caller may have left an earlier answer
    run_or_break([&] {
        pending_.add_other(this);
        detail::append(outgoing(), std::vector<detail::Word>(words.begin(), words.end()));
    });
    flush();
}

void Connection::subscribe(std::string_view channel) {
    send_words(std::array<std::string_view, 2>{"SUBSCRIBE", channel});
    subscribed_ = true;
}

/// Appends ASKING. Nobody awaits its reply: without the permission, the server answers the next command with
/// MOVED.
void Connection::write_asking() {
    pending_.add_other(nullptr);
    if (established()) ++collected_;
    detail::append(outgoing_command(), {"ASKING"});
}

/// Breaks the connection if memory runs out, because a command or a reply may be incomplete then.
template <class Action>
void Connection::run_or_break(Action action) {
    try {
        action();
    } catch (...) {
        fail(std::make_error_code(std::errc::not_enough_memory), {});
        throw;
    }
}

void Connection::flush() {
    const auto is_full = [this] {
        return collected_ >= detail::max_collected_commands ||
               out_.size() + plain_out_.size() >= detail::max_collected_bytes;
    };
    if (!collects_ || !ready() || blocked_ || is_full()) write_collected();
}

void Connection::write_collected() {
    if (broken() || (out_.empty() && plain_out_.empty())) return;
    written_commands_ += std::exchange(collected_, 0);
    blocked_ = false;
    if (!plain_out_.empty()) {
        // Without memory, OpenSSL may have encrypted commands that `out_` lacks.
        bool encrypted = false;
        run_or_break([&] { encrypted = tls_->send(plain_out_, out_); });
        if (!encrypted) return fail_by_tls();
        plain_out_.clear();
    }
    while (written_ < out_.size()) {
        const auto sent = socket_->send(std::string_view{out_}.substr(written_));
        if (sent == -EINTR) continue;
        blocked_ = sent == -EAGAIN || sent == -EWOULDBLOCK;
        if (blocked_) return;
        if (sent < 0) {
            read(Socket::Wait::no);  // what the server said before it closed explains more
            if (!broken()) run_or_break([&] { fail_by_network(static_cast<int>(-sent)); });
            return;
        }
        written_ += static_cast<std::size_t>(sent);
    }
    out_.clear();
    written_ = 0;
    tls_answers_ = 0;
    if (established() && pending_.has_unwritten()) pending_.record_write(network_.clock().now());
}

/// This is more than any expected reply needs. A server must not be able to fill the memory.
static constexpr std::size_t max_unparsed = 65'536;
/// The list of the servers of a Redis Cluster has about 170 bytes for each.
static constexpr std::size_t max_server_list = 1'048'576;
static constexpr std::size_t max_tls_answers = 65'536;

void Connection::read(Socket::Wait wait) {
    if (broken()) return;
    run_or_break([&] {
        receive(wait);
        while (!broken() && parse_reply()) take_reply();
        if (!broken() && parser_.unparsed() > (config_.cluster ? max_server_list : max_unparsed))
            fail(Errc::unexpected_reply, "a reply that does not end");
    });
}

/// Passes received bytes to the parser.
void Connection::receive(Socket::Wait wait) {
    std::array<char, 16'384> bytes;
    const auto length = socket_->receive(bytes, wait);
    if (length == -EAGAIN || length == -EWOULDBLOCK || length == -EINTR) return;
    if (length <= 0) return fail_by_network(static_cast<int>(-length));
    const std::string_view received{bytes.data(), static_cast<std::size_t>(length)};
    tls_ ? decrypt(received) : feed(received);
}

/// A reply that the end of the TLS session follows at once counts, as a reply before the end of a connection
/// without TLS does. The connection then fails when it is used or read again.
void Connection::decrypt(std::string_view cipher) {
    plain_in_.clear();
    const auto to_send = out_.size();
    const bool open = tls_->receive(cipher, plain_in_, out_);
    tls_answers_ += out_.size() - to_send;
    if (tls_answers_ > max_tls_answers)
        return fail(Errc::unexpected_reply, "TLS: too many messages of the server demand an answer");
    if (!open && (!established() || plain_in_.empty())) {
        const auto cause = tls_->cause();
        auto reason = tls_->error();
        flush();  // sends the alert that tells the server the reason
        if (!broken()) fail(cause, std::move(reason));
        return;
    }
    if (state_ == State::securing && tls_->established()) begin_handshake();
    if (!broken()) feed(plain_in_);
}

void Connection::feed(std::string_view plain) {
    if (!parser_.feed(plain)) fail(shortage(), "no memory for a reply");
}

/// Returns false if the next reply is not complete yet.
bool Connection::parse_reply() {
    const auto progress = parser_.next();
    if (progress == ReplyParser::Progress::protocol_error)
        fail(Errc::unexpected_reply, "the reply does not follow the Redis protocol");
    return progress == ReplyParser::Progress::complete;
}

/// Takes a message to a subscriber, a reply of the handshake, a late reply, or the answer to a command.
void Connection::take_reply() {
    constexpr std::string_view message = "message\n";
    if (subscribed_ && pending_.none() && incoming_.text.starts_with(message)) {
        messages_.push_back(incoming_.text.substr(incoming_.text.find('\n', message.size()) + 1));
        return;
    }
    if (outstanding() == 0) return fail(Errc::unexpected_reply, "a reply that no command asked for");
    auto& command = pending_.next();
    const bool handshake = command.handshake;
    const bool refused = command.is_form_refused(incoming_);
    if (config_.cluster && incoming_.kind == Reply::Kind::error) take_redirection(command);
    learn_from(command, refused);
    if (refused && command.may_be_repeated()) {
        // Without memory for the repetition, the entry is still pending, and another connection repeats it.
        const auto release = command;
        repeat(release);
        return pending_.received(incoming_);
    }
    const bool refused_by_replica = command.may_be_repeated() && incoming_.is_error("READONLY");
    if (command.releases() && !refused) keep_refused(command);
    pending_.received(incoming_);
    if (handshake) take_handshake_reply();
    // A name, the Sentinels or a proxy may lead to a new master by now, but only a new connection.
    if (refused_by_replica) fail(Errc::read_only, quoted(incoming_.text));
}

/// Learns from an error of a server of a Redis Cluster. kept_releases.hpp says what happens to a release.
void Connection::take_redirection(const PendingReply& command) {
    const auto& host = config_.endpoint.host;
    if (incoming_.is_error("CLUSTERDOWN")) config_.cluster->outdated();
    const auto to = detail::parse_redirection(incoming_.text);
    if (!to) return;
    config_.cluster->redirected(*to, host);
    if (command.may_be_repeated()) config_.cluster->keep(command, *to, host);
}

/// If the reply is an error that may go away by itself, or the server is a replica now, lets a later round
/// send the release again. If nobody knows whether the error goes away, the number of repetitions stays
/// limited (max_release_repeats).
void Connection::keep_refused(const PendingReply& release) {
    if (!config_.server || incoming_.kind != Reply::Kind::error) return;
    const auto cause = detail::cause_of(incoming_);
    if (!is_transient(cause) && cause != Errc::read_only) return;
    // For example because it has too few replicas, or could not save its data.
    const bool is_for_now = cause == Errc::server_busy || cause == Errc::loading;
    detail::PendingReplies kept;
    const auto keep = [&](const PendingReply& it) {
        kept.add_repetition(it).repeats = is_for_now ? std::uint8_t{} : it.repeats;
    };
    if (incoming_.is_error("TRYAGAIN") && release.resources.size() > 1) {
        // Their hash slot is being moved. A release of one resource is executed wherever its key is.
        auto single = release;
        for (const auto& resource : release.resources) {
            single.resources = {resource};
            keep(single);
        }
    } else {
        keep(release);
    }
    config_.server->kept().keep(std::move(kept), false, network_.clock().now() + refusal_pause);
}

/// Remembers which scripts the server knows, and whether it permits digests and the queue. After NOSCRIPT the
/// server knows no script any more, for example because of SCRIPT FLUSH.
void Connection::learn_from(const PendingReply& command, bool form_refused) noexcept {
    const auto& reply = incoming_;
    if (reply.is_error("NOSCRIPT"))
        known_.reset();
    else if (command.are_digests_refused(reply))
        allows_digests_ = false;
    else if (form_refused)
        allows_queue_ = false;
    else if (command.script && command.requester)
        known_[detail::number_of(command.script)] = reply.kind != Reply::Kind::error;
}

void Connection::fail(std::error_code cause, std::string detail) {
    state_ = State::broken;
    cause_ = cause;
    detail_ = std::move(detail);
    if (socket_) socket_->drop_unsent();
    close_socket();
}

void Connection::close_socket() noexcept {
    if (socket_) network_.forget(socket_->fd());
    socket_.reset();
}

}  // namespace redlock
