// A SET that the kernel has not sent when its connection is closed must not be sent later. Its release uses
// another connection, so the key would remain for its whole ttl.
#include "fake_redis_server.hpp"
#include "live_world.hpp"

#include <atomic>
#include <string>

namespace redlock::test::late_set_live_test {
namespace {

/// What arrived on the first connection after the client had closed it.
enum class Arrived : int { nothing_yet, a_whole_command, a_part };

/// Reads nothing of the first command after the handshake until go_on() is called.
class StalledServer {
public:
    std::string uri() const { return server_.uri(); }
    void go_on() { goes_on_ = true; }
    Arrived arrived() const { return arrived_; }

private:
    void serve(Session& session) {
        (void)session.receive_command();
        session.send("+PONG\r\n");
        if (connections_++ > 0) return answer_all(session);
        session.wait_for_byte();
        session.send("this is no reply\r\n");
        EXPECT_TRUE(wait_until([&] { return goes_on_.load(); }));
        try {
            (void)session.receive_command();
            arrived_ = Arrived::a_whole_command;
        } catch (const Session::Disconnected&) {
            arrived_ = Arrived::a_part;
        }
    }
    static void answer_all(Session& session) {
        for (;;) {
            (void)session.receive_command();
            session.send(":0\r\n");
        }
    }

    std::atomic<int> connections_{0};
    std::atomic<bool> goes_on_{false};
    std::atomic<Arrived> arrived_{Arrived::nothing_yet};
    FakeRedisServer server_{[this](Session& session) { serve(session); }};
};

// D4. The command is larger than what the server's kernel accepts while the server reads nothing, and smaller
// than what the client's kernel accepts.
TEST(LateSet, IsNotSentAfterItsConnectionIsGivenUp) {
    const std::string resource(400'000, 'r');
    StalledServer server;
    RedisNodes nodes{std::vector{server.uri()}, {.node_timeout = 2s}};
    Lock lock{nodes, resource, no_retry(1h)};
    const auto result = lock.acquire();
    EXPECT_THAT(result, Reports(0, Errc::unexpected_reply));
    EXPECT_TRUE(result.nodes()[0].sent);
    server.go_on();
    ASSERT_TRUE(wait_until([&] { return server.arrived() != Arrived::nothing_yet; }));
    EXPECT_EQ(server.arrived(), Arrived::a_part);
}

}  // namespace
}  // namespace redlock::test::late_set_live_test
