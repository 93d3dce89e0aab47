// A server whose behavior on each connection is a function of the test.
//
//     FakeRedisServer server{[](Session& session) {
//         session.receive_command();
//         session.send("$9999999999\r\n");   // anything
//         session.ignore_all();              // until the client disconnects
//     }};
//     RedisNodes nodes{server.uri()};
#pragma once

#include "support/command_reader.hpp"
#include "support/reserved_port.hpp"

#include <redlock/detail/not_copied.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test {

/// One connection, as the server sees it. Its functions throw Disconnected if the client closes the
/// connection or the server ends.
class Session : detail::NotCopied {
public:
    struct Disconnected {};

    Session(int socket, const std::atomic<bool>& closing) : socket_(socket), closing_(closing) {
        const int on = 1;
        ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on,
                     sizeof on);  // sends each byte in its own packet
    }
    ~Session() { ::close(socket_); }

    /// Returns the next command.
    std::vector<std::string> receive_command() {
        while (received_.empty()) receive();
        auto words = std::move(received_.front());
        received_.pop_front();
        return words;
    }

    /// Waits for any byte.
    void receive_byte() {
        if (received_.empty()) receive();
    }

    void send(std::string_view bytes) {
        while (!bytes.empty()) {
            wait_for(POLLOUT);
            const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0 && errno != EAGAIN) throw Disconnected{};
            if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }

    /// The same, one byte after the other.
    void trickle(std::string_view bytes, std::chrono::milliseconds pause) {
        for (const char byte : bytes) {
            send({&byte, 1});
            const auto end = std::chrono::steady_clock::now() + pause;
            while (std::chrono::steady_clock::now() < end) {
                if (closing_) throw Disconnected{};
                std::this_thread::sleep_for(std::chrono::milliseconds{1});
            }
        }
    }

    /// Reads everything and sends no reply, until the client disconnects.
    [[noreturn]] void ignore_all() {
        for (;;) received_.clear(), receive();
    }

    /// Ends the connection with an RST instead of a FIN.
    [[noreturn]] void reset() {
        const linger at_once{1, 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        throw Disconnected{};
    }

private:
    void receive() {
        wait_for(POLLIN);
        std::array<char, 16'384> buffer;
        const auto count = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (count > 0)
            reader_.take({buffer.data(), static_cast<std::size_t>(count)},
                         [this](auto words) { received_.push_back(std::move(words)); });
        if (count == 0 || (count < 0 && errno != EAGAIN)) throw Disconnected{};
    }

    void wait_for(short event) {
        for (;;) {
            if (closing_) throw Disconnected{};
            pollfd ready{socket_, event, 0};
            if (::poll(&ready, 1, 10) > 0) return;
        }
    }

    int socket_;
    const std::atomic<bool>& closing_;
    support::CommandReader reader_{std::string::npos};
    std::deque<std::vector<std::string>> received_{};  // commands
};

class FakeRedisServer : detail::NotCopied {
public:
    using Behavior = std::function<void(Session&)>;

    /// Accepts any number of clients on a port of 127.0.0.1. Calls `behavior` for each client in a separate
    /// thread, and closes the connection when it returns.
    explicit FakeRedisServer(Behavior behavior) : behavior_(std::move(behavior)) {
        acceptor_ = std::jthread{[this] { accept_all(); }};
    }
    ~FakeRedisServer() {
        closing_ = true;
        acceptor_.join();
        sessions_.clear();  // joins
        ::close(listener_);
    }

    std::string name() const { return "127.0.0.1:" + std::to_string(port_.number()); }
    std::string uri() const { return "redis://" + name(); }

private:
    void accept_all() {
        while (!closing_) {
            pollfd waiting{listener_, POLLIN, 0};
            if (::poll(&waiting, 1, 10) <= 0) continue;
            const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (socket < 0) continue;
            sessions_.emplace_back([this, socket] {
                try {
                    Session session{socket, closing_};
                    behavior_(session);
                } catch (const Session::Disconnected&) {
                }
            });
        }
    }

    Behavior behavior_;
    support::ReservedPort port_{};
    int listener_ = port_.listen();
    std::atomic<bool> closing_{false};
    std::list<std::jthread> sessions_{};  // used by the acceptor alone
    std::jthread acceptor_{};
};

}  // namespace redlock::test
