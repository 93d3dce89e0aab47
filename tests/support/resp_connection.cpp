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
      reader_(std::move(other.reader_)) {}

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
    using Progress = ReplyReader::Progress;
    const auto deadline = steady::now() + timeout_;
    RedisReply reply;
    for (auto progress = reader_.next(reply); progress != Progress::reply; progress = reader_.next(reply)) {
        if (progress != Progress::incomplete) throw std::runtime_error("the server did not send a reply");
        receive(deadline);
    }
    return reply;
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
            reader_.take({buffer.data(), static_cast<std::size_t>(count)});
            return;
        }
        if (errno != EINTR && errno != EAGAIN) fail("recv");
    }
}

}  // namespace redlock::support
