// The parts of Network that the operating system does, and that no network in memory shows.
#include "os/os_network.hpp"
#include "os/socket.hpp"
#include "support/reserved_port.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

namespace redlock::test::os_network_live_test {
namespace {

using namespace std::chrono_literals;

Clock::time_point now() {
    return boot_clock().now();
}

// ---- Waiting

// A9. Nothing else ends this wait: it has no entry, and its deadline is far away.
TEST(OsNetwork, AStopEndsAWaitAtOnce) {
    OsNetwork network;
    std::stop_source stop;
    Clock::time_point ended;
    std::thread waiter{[&] {
        network.wait({}, now(), now() + 1min, stop.get_token());
        ended = now();
    }};
    std::this_thread::sleep_for(50ms);  // it waits by now, or finds that stop is requested
    const auto stopped = now();
    stop.request_stop();
    waiter.join();
    EXPECT_LT(ended - stopped, 20s);
}

TEST(OsNetwork, AStopRequestedBeforeTheWaitEndsItAtOnce) {
    OsNetwork network;
    std::stop_source stop;
    stop.request_stop();
    const auto start = now();
    network.wait({}, start, start + 1min, stop.get_token());
    EXPECT_LT(now() - start, 20s);
}

/// Returns the number that an option of a socket has.
int option_of(int fd, int level, int option) {
    int value = -1;
    socklen_t length = sizeof value;
    EXPECT_EQ(::getsockopt(fd, level, option, &value, &length), 0);
    return value;
}

TEST(ASocket, IsKeptAlive) {
    const int fd = open_socket(AF_INET, 12s);
    EXPECT_EQ(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 12);
    EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL), 4);
    EXPECT_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
    ::close(fd);
}

// Without its seconds, the timeout would be zero here, and the read would block for ever.
TEST(ABlockingSocket, HasItsWholeTimeout) {
    const int fd = open_socket(AF_INET, 30s);
    ASSERT_GE(fd, 0);
    for (const auto longest : {1000ms, 2500ms, 500ms}) {
        make_blocking(fd, longest);
        timeval timeout{};
        socklen_t length = sizeof timeout;
        ASSERT_EQ(::getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, &length), 0);
        const auto whole = std::chrono::seconds{timeout.tv_sec} + std::chrono::microseconds{timeout.tv_usec};
        EXPECT_GE(whole, longest);
        EXPECT_LE(whole, longest + 20ms) << "the kernel rounds up to whole ticks";
    }
    EXPECT_EQ(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ::close(fd);
}

// ---- Sockets

/// Accepts one connection on a free port, and reads only on demand.
class Peer : detail::NotCopied {
public:
    Peer() {
        const auto name = support::loopback_address(port_.number());
        std::memcpy(&address.storage, &name, sizeof name);
        address.length = sizeof name;
    }
    ~Peer() {
        for (const int fd : {socket_, listener_})
            if (fd >= 0) ::close(fd);
    }

    void accept() { socket_ = ::accept(listener_, nullptr, nullptr); }
    void end_stream() const { EXPECT_EQ(::shutdown(socket_, SHUT_WR), 0); }
    /// Reads everything. Returns 0 at an orderly end of the connection, otherwise an errno.
    int read_to_the_end() {
        std::array<char, 65'536> bytes;
        for (;;) {
            const auto length = ::recv(socket_, bytes.data(), bytes.size(), 0);
            if (length == 0) return 0;
            if (length < 0) return errno;
            received += static_cast<std::size_t>(length);
        }
    }

    Address address{};
    std::size_t received = 0;

private:
    const support::ReservedPort port_{};
    const int listener_ = port_.listen();
    int socket_ = -1;
};

struct OsSockets : testing::Test {
    OsSockets() {
        int error = 0;
        socket = network.connect(peer.address, 1s, error);
        EXPECT_EQ(error, 0);
        peer.accept();
        EXPECT_EQ(socket->connect_result(), 0);
    }
    /// Sends until the kernel accepts no more. Returns the number of bytes.
    std::size_t send_as_much_as_possible() {
        const std::string bytes(65'536, 'x');
        std::size_t sent = 0;
        for (std::ptrdiff_t taken = 0; (taken = socket->send(bytes)) > 0;)
            sent += static_cast<std::size_t>(taken);
        return sent;
    }

    Peer peer{};
    OsNetwork network{};
    std::unique_ptr<Socket> socket{};
};

// A server that is restarted ends its idle connections. None of them may be used again.
TEST_F(OsSockets, HaveInputAtTheEndOfTheStream) {
    EXPECT_FALSE(socket->has_input());
    peer.end_stream();
    PollEntry entry{.socket = socket.get(), .fd = socket->fd()};
    network.wait({&entry, 1}, now(), now() + 1min);
    EXPECT_TRUE(entry.ready);
    EXPECT_TRUE(socket->has_input());
}

// A command that was given up must not be executed later.
TEST_F(OsSockets, DropUnsentBytesIfAsked) {
    const auto sent = send_as_much_as_possible();
    socket->drop_unsent();
    socket.reset();
    EXPECT_EQ(peer.read_to_the_end(), ECONNRESET);
    EXPECT_LT(peer.received, sent);
}

// A release that no round awaits may be on its way.
TEST_F(OsSockets, SendUnsentBytesByDefault) {
    const auto sent = send_as_much_as_possible();
    socket.reset();
    EXPECT_EQ(peer.read_to_the_end(), 0);
    EXPECT_EQ(peer.received, sent);
}

}  // namespace
}  // namespace redlock::test::os_network_live_test
