#include "support/resp_connection.hpp"

#include "support/reserved_port.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace redlock::support {

namespace {

using steady = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

/// Connects without a deadline, because a connection on the local machine succeeds or fails at once.
template <class Address>
int connect_to(const Address& address, int family) {
    const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) fail("socket");
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
    const auto error = errno;
    ::close(socket);
    errno = error;
    fail("connect");
}

int connect_to(std::uint16_t port) {
    return connect_to(loopback_address(port), AF_INET);
}

int connect_to(const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto& name = path.native();
    if (name.size() >= sizeof address.sun_path)
        throw std::runtime_error("the path of the socket is too long: " + name);
    std::copy(name.begin(), name.end(), address.sun_path);
    return connect_to(address, AF_UNIX);
}

}  // namespace

RespConnection::RespConnection(std::uint16_t port, Timeout timeout)
    : socket_(connect_to(port)), timeout_(timeout) {}

RespConnection::RespConnection(const std::filesystem::path& socket, Timeout timeout)
    : socket_(connect_to(socket)), timeout_(timeout) {}

RespConnection::~RespConnection() {
    if (socket_ >= 0) ::close(socket_);
}

RespConnection::RespConnection(RespConnection&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      timeout_(other.timeout_),
      received_(std::move(other.received_)) {}

std::string RespConnection::ask(const std::vector<std::string>& words) {
    send(words);
    return read();
}

void RespConnection::send(const std::vector<std::string>& words) {
    write_all(to_resp(words));
}

RedisReply RespConnection::ask_for_reply(const std::vector<std::string>& words) {
    send(words);
    return read_reply();
}

std::string RespConnection::read() {
    return text_of(read_reply());
}

RedisReply RespConnection::read_reply() {
    return read_until(steady::now() + timeout_);
}

void RespConnection::write_all(std::string_view bytes) {
    const auto deadline = steady::now() + timeout_;
    while (!bytes.empty()) {
        wait_for(POLLOUT, deadline);
        const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        else if (errno != EINTR && errno != EAGAIN)
            fail("send");
    }
}

void RespConnection::wait_for(short event, steady::time_point deadline) const {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady::now()).count();
        if (left <= 0) throw std::runtime_error("the server did not answer in time");
        pollfd descriptor{socket_, event, 0};
        const int ready = ::poll(&descriptor, 1, static_cast<int>(left));
        if (ready > 0) return;
        if (ready < 0 && errno != EINTR) fail("poll");
    }
}

void RespConnection::receive(steady::time_point deadline) {
    std::array<char, 16'384> buffer;
    for (;;) {
        wait_for(POLLIN, deadline);
        const auto count = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (count == 0) throw std::runtime_error("the server closed the connection");
        if (count > 0) {
            received_.append(buffer.data(), static_cast<std::size_t>(count));
            return;
        }
        if (errno != EINTR && errno != EAGAIN) fail("recv");
    }
}

std::string RespConnection::take(std::size_t length, steady::time_point deadline) {
    while (received_.size() < length) receive(deadline);
    auto result = received_.substr(0, length);
    received_.erase(0, length);
    return result;
}

std::string RespConnection::take_line(steady::time_point deadline) {
    auto end = received_.find("\r\n");
    while (end == std::string::npos) {
        receive(deadline);
        end = received_.find("\r\n");
    }
    auto line = take(end + 2, deadline);
    line.resize(end);
    return line;
}

// NOLINTNEXTLINE(misc-no-recursion): arrays contain arrays
RedisReply RespConnection::read_until(steady::time_point deadline) {
    const auto line = take_line(deadline);
    auto rest = line.substr(std::min<std::size_t>(1, line.size()));
    switch (line.empty() ? '\0' : line.front()) {
        case '+': return RedisReply::of_status(std::move(rest));
        case '-': return RedisReply::of_error(std::move(rest));
        case ':': return RedisReply::of_integer(std::stoll(rest));
        case '$': return read_string(std::stol(rest), deadline);
        case '*': return read_array(std::stol(rest), deadline);
        default: throw std::runtime_error("not a reply: " + line);
    }
}

RedisReply RespConnection::read_string(long length, steady::time_point deadline) {
    if (length < 0) return {};
    auto text = take(static_cast<std::size_t>(length) + 2, deadline);
    text.resize(text.size() - 2);
    return RedisReply::of_bulk(std::move(text));
}

// NOLINTNEXTLINE(misc-no-recursion)
RedisReply RespConnection::read_array(long length, steady::time_point deadline) {
    if (length < 0) return {};
    std::vector<RedisReply> elements;
    for (long i = 0; i < length; ++i) elements.push_back(read_until(deadline));
    return RedisReply::of_array(std::move(elements));
}

}  // namespace redlock::support
