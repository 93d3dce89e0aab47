#include "delaying_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <list>
#include <system_error>
#include <utility>

namespace redlock::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto spins_for = 3ms;   // after the last byte
constexpr int longest_sleep = 5;  // milliseconds, until it is looked whether to stop

int checked(int result, const char* what) {
    if (result < 0) throw std::system_error{errno, std::generic_category(), what};
    return result;
}

class Socket {
public:
    Socket() : fd_(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")) { at_once(); }
    explicit Socket(int fd) : fd_(fd) { at_once(); }
    ~Socket() {
        if (fd_ >= 0) ::close(fd_);
    }
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    int fd() const noexcept { return fd_; }

private:
    void at_once() const {
        const int on = 1;
        ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    int fd_;
};

sockaddr_in local(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

Socket listening() {
    Socket socket;
    const auto address = local(0);
    checked(::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
    checked(::listen(socket.fd(), SOMAXCONN), "listen");
    return socket;
}

std::uint16_t port_of(const Socket& socket) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    checked(::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length), "getsockname");
    return ntohs(address.sin_port);
}

/// What goes from one socket to another, and when it may arrive.
class Pipe {
public:
    Pipe(int from, int to) : from_(from), to_(to) {}

    int from() const noexcept { return from_; }
    bool open() const noexcept { return !ended_ || !parcels_.empty(); }
    bool reading() const noexcept { return !ended_; }

    void take(Clock::time_point due) {
        std::array<char, 65'536> bytes;
        const auto length = ::recv(from_, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
        ended_ = length <= 0;
        parcels_.push_back({due, std::string(bytes.data(), ended_ ? 0 : static_cast<std::size_t>(length))});
    }

    void deliver(Clock::time_point now) {
        for (; !parcels_.empty() && parcels_.front().due <= now; parcels_.pop_front()) {
            auto& bytes = parcels_.front().bytes;
            if (bytes.empty()) {
                ::shutdown(to_, SHUT_WR);
                continue;
            }
            const auto sent = ::send(to_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0 && errno == EAGAIN) return;
            if (sent >= 0 && static_cast<std::size_t>(sent) < bytes.size()) {
                bytes.erase(0, static_cast<std::size_t>(sent));
                return;
            }
        }
    }

private:
    struct Parcel {
        Clock::time_point due;
        std::string bytes;  // empty: the end
    };
    int from_;
    int to_;
    bool ended_ = false;
    std::deque<Parcel> parcels_{};
};

struct Link {
    Link(Socket the_client, Socket the_server)
        : client(std::move(the_client)),
          server(std::move(the_server)),
          pipes{Pipe{client.fd(), server.fd()}, Pipe{server.fd(), client.fd()}} {}
    Socket client;
    Socket server;
    std::array<Pipe, 2> pipes;
    bool open() const noexcept { return pipes[0].open() || pipes[1].open(); }
};

}  // namespace

class DelayingProxy::Loop {
public:
    Loop(const std::vector<std::uint16_t>& upstream_ports, std::chrono::nanoseconds each_way)
        : each_way_(each_way) {
        for (const auto port : upstream_ports) doors_.push_back({listening(), port});
    }

    std::vector<std::uint16_t> ports() const {
        std::vector<std::uint16_t> ports;
        for (const auto& door : doors_) ports.push_back(port_of(door.socket));
        return ports;
    }

    void run(const std::atomic<bool>& stop) {
        while (!stop) {
            wait();
            const auto now = Clock::now();
            for (std::size_t i = 0; i < doors_.size(); ++i)
                if (fds_[i].revents != 0) let_in(doors_[i]);
            carry(now);
            std::erase_if(links_, [](const Link& link) { return !link.open(); });
        }
    }

private:
    struct Door {
        Socket socket;
        std::uint16_t upstream;
    };

    void wait() {
        fds_.clear();
        for (const auto& door : doors_) fds_.push_back({door.socket.fd(), POLLIN, 0});
        watched_.clear();
        for (auto& link : links_)
            for (auto& pipe : link.pipes)
                if (pipe.reading()) {
                    fds_.push_back({pipe.from(), POLLIN, 0});
                    watched_.push_back(&pipe);
                }
        const bool awake = Clock::now() < awake_until_;
        ::poll(fds_.data(), fds_.size(), awake ? 0 : longest_sleep);
    }

    void let_in(const Door& door) {
        Socket client{::accept4(door.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC)};
        Socket server;
        const auto address = local(door.upstream);
        if (::connect(server.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
        links_.emplace_back(std::move(client), std::move(server));
        awake_until_ = Clock::now() + spins_for;
    }

    void carry(Clock::time_point now) {
        for (std::size_t i = 0; i < watched_.size(); ++i)
            if (fds_[doors_.size() + i].revents != 0) {
                watched_[i]->take(now + each_way_);
                awake_until_ = now + each_way_ + spins_for;
            }
        for (auto& link : links_)
            for (auto& pipe : link.pipes) pipe.deliver(now);
    }

    std::chrono::nanoseconds each_way_;
    std::vector<Door> doors_{};
    std::list<Link> links_{};
    std::vector<pollfd> fds_{};
    std::vector<Pipe*> watched_{};
    Clock::time_point awake_until_{};
};

DelayingProxy::DelayingProxy(const std::vector<std::uint16_t>& upstream_ports,
                             std::chrono::nanoseconds each_way)
    : loop_(std::make_unique<Loop>(upstream_ports, each_way)) {
    ports_ = loop_->ports();
    thread_ = std::thread{[this] { loop_->run(stop_); }};
}

DelayingProxy::~DelayingProxy() {
    stop_ = true;
    thread_.join();
}

std::vector<std::string> DelayingProxy::uris() const {
    std::vector<std::string> uris;
    for (const auto port : ports_) uris.push_back("redis://127.0.0.1:" + std::to_string(port));
    return uris;
}

}  // namespace redlock::bench
