#include "support/proxied_connection.hpp"

#include "support/reserved_port.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

namespace redlock::support {

namespace {

constexpr auto no_limit = std::numeric_limits<std::size_t>::max();

void send_at_once(int socket) noexcept {
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/// Makes a later close() send a reset.
void reset_when_closed(int socket) noexcept {
    const linger none{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

bool broke(short heard) noexcept {
    return (heard & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

}  // namespace

// ---- Stream

void Stream::push(std::string bytes, ProxyTime due) {
    if (!queue_.empty()) due = std::max(due, queue_.back().due);  // a link does not reorder
    size_ += bytes.size();
    queue_.push_back({due, std::move(bytes)});
}

void Stream::hurry(ProxyTime now) {
    for (auto& chunk : queue_) chunk.due = std::min(chunk.due, now);
    next_byte_ = now;
}

void Stream::clear() {
    queue_.clear();
    begun_ = size_ = 0;
    blocked_ = false;
}

ProxyTime Stream::next_due() const {
    return queue_.empty() ? ProxyTime::max() : std::max(queue_.front().due, next_byte_);
}

bool Stream::pass_to(int sink, ProxyTime now, std::size_t most, std::optional<Faults::Span> trickle) {
    passed_ = 0;
    blocked_ = false;
    while (passed_ < most) {
        if (queue_.empty() || queue_.front().due > now || next_byte_ > now) return true;
        auto& bytes = queue_.front().bytes;
        const auto length =
            std::min({bytes.size() - begun_, most - passed_, trickle ? std::size_t{1} : no_limit});
        const auto sent = ::send(sink, bytes.data() + begun_, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        blocked_ = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (sent < 0) return blocked_;
        const auto count = static_cast<std::size_t>(sent);
        passed_ += count;
        size_ -= count;
        begun_ += count;
        if (trickle) next_byte_ = now + *trickle;
        if (begun_ < bytes.size()) continue;
        queue_.pop_front();
        begun_ = 0;
    }
    return true;
}

// ---- ProxiedConnection

ProxiedConnection::ProxiedConnection(int client, std::size_t number, const Faults& faults)
    : number_(number), client_{.fd = client} {
    send_at_once(client);
    limit(faults);
}

ProxiedConnection::~ProxiedConnection() {
    close();
}

void ProxiedConnection::close() noexcept {
    for (auto* const socket : {&client_, &server_})
        if (socket->fd >= 0) ::close(std::exchange(socket->fd, -1));
}

void ProxiedConnection::reset() noexcept {
    for (const auto* const socket : {&client_, &server_})
        if (socket->fd >= 0) reset_when_closed(socket->fd);
    close();
}

void ProxiedConnection::limit(const Faults& faults) {
    cut_at_.reset();
    if (faults.cut_after) cut_at_ = reply_bytes_ + *faults.cut_after;
}

/// Resets the connection if the client has closed it in the black hole. Such a client receives nothing of the
/// kept data.
void ProxiedConnection::heal(ProxyTime now, const Faults& faults) {
    pollfd client{client_.fd, 0, 0};
    if (in_hole(faults) && ::poll(&client, 1, 0) > 0 && broke(client.revents)) return reset();
    cut_at_.reset();
    requests_.hurry(now);
    replies_.hurry(now);
}

pollfd ProxiedConnection::events(const Socket& socket, const Stream& from, const Stream& to,
                                 const Faults& faults) const noexcept {
    if (socket.deaf || socket.gone || (from.ended && to.end_passed)) return {-1, 0, 0};
    if (in_hole(faults)) return {socket.fd, 0, 0};
    const bool reads = !from.ended && !from.full();
    const bool writes = to.blocked() && !(faults.hold && &to == &replies_);
    return {socket.fd, static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0};
}

pollfd ProxiedConnection::client_events(const Faults& faults) const noexcept {
    return events(client_, requests_, replies_, faults);
}

pollfd ProxiedConnection::server_events(const Faults& faults) const noexcept {
    if (connecting_) return {in_hole(faults) ? -1 : server_.fd, POLLOUT, 0};
    return events(server_, replies_, requests_, faults);
}

void ProxiedConnection::polled(short client, short server) noexcept {
    client_.heard = client;
    server_.heard = server;
}

ProxyTime ProxiedConnection::next_due(const Faults& faults) const {
    if (in_hole(faults) || connecting_) return ProxyTime::max();
    auto due = requests_.blocked() ? ProxyTime::max() : requests_.next_due();
    if (!replies_.blocked() && !faults.hold) due = std::min(due, replies_.next_due());
    return due;
}

/// Returns false if nothing can be passed on now.
bool ProxiedConnection::prepare(const Faults& faults, std::uint16_t server_port) {
    if (in_hole(faults)) {
        listen_in_the_hole();
        return false;
    }
    server_.deaf = false;
    if (server_.fd < 0 && !connect(server_port)) {
        reset();
        return false;
    }
    if (connecting_ && server_.heard != 0) {
        connecting_ = false;
        if (broke(server_.heard)) reset();
    }
    return !over() && !connecting_;
}

/// Resets the connection if the client has given up. What it sent into the black hole is then lost for good.
void ProxiedConnection::listen_in_the_hole() noexcept {
    if (broke(client_.heard)) return reset();
    if (broke(server_.heard)) server_.deaf = true;
}

bool ProxiedConnection::connect(std::uint16_t server_port) {
    const auto address = loopback_address(server_port);
    server_.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (server_.fd < 0) return false;
    send_at_once(server_.fd);
    if (::connect(server_.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
    connecting_ = errno == EINPROGRESS;
    return connecting_;
}

/// Reads once. Returns an empty text if there is nothing, or nothing more.
std::string ProxiedConnection::receive(Socket& from, Stream& stream) {
    if (from.heard == 0 || from.gone || stream.ended || (stream.full() && !broke(from.heard))) return {};
    std::array<char, 65'536> bytes;
    const auto count = ::recv(from.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) return {bytes.data(), static_cast<std::size_t>(count)};
    stream.ended = count == 0;
    from.gone = count < 0 && errno != EAGAIN && errno != EINTR;
    return {};
}

void ProxiedConnection::take_reply(std::string bytes, ProxyTime now, const Faults& faults) {
    if (bytes.empty()) return;
    if (faults.replacement) bytes = *faults.replacement;
    replies_.push(std::move(bytes), now + faults.delay);
}

void ProxiedConnection::forward(ProxyTime now, const Faults& faults) {
    forward_requests(now, faults);
    forward_replies(now, faults);
    if (over()) return;
    if (client_.gone) replies_.clear();
    if (server_.gone) requests_.clear();
    // A reset comes after the bytes that were sent before it.
    if ((client_.gone || server_.gone) && requests_.empty() && replies_.empty()) return reset();
    pass_ends();
}

void ProxiedConnection::forward_requests(ProxyTime now, const Faults& faults) {
    if (server_.gone || requests_.pass_to(server_.fd, now, no_limit, {})) {
        request_bytes_ += server_.gone ? 0 : requests_.passed();
        return;
    }
    server_.heard = POLLIN;
    take_reply(receive(server_, replies_), now, faults);  // the last bytes of the server
    server_.gone = true;
}

void ProxiedConnection::forward_replies(ProxyTime now, const Faults& faults) {
    if (client_.gone || faults.hold) return;
    const auto most = cut_at_.value_or(no_limit) - reply_bytes_;
    client_.gone = !replies_.pass_to(client_.fd, now, most, faults.trickle);
    reply_bytes_ += replies_.passed();
    if (cut_at_ == reply_bytes_) close();
}

/// Passes on the end of a stream after all its bytes.
void ProxiedConnection::pass_ends() {
    for (auto* const stream : {&requests_, &replies_}) {
        if (!stream->ended || stream->end_passed || !stream->empty()) continue;
        ::shutdown(stream == &requests_ ? server_.fd : client_.fd, SHUT_WR);
        stream->end_passed = true;
    }
    if (requests_.end_passed && replies_.end_passed) close();
}

}  // namespace redlock::support
