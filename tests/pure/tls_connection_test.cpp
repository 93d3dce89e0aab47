// A Connection to a server in memory that speaks TLS.
#include "memory_network.hpp"
#include "support/replaced_new.hpp"
#include "tls_server_in_memory.hpp"

#include "redis/connection.hpp"

#include <cerrno>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <string_view>

namespace {
long allocations_left = 0;  // the allocation that reduces this number to 0 fails
}

void redlock::support::before_allocation() {
    if (allocations_left > 0 && --allocations_left == 0) throw std::bad_alloc{};
}

namespace redlock::test::tls_connection_test {
namespace {

/// Returns true if the allocation with this number was made, and so has failed.
template <class Action>
bool fails_at(long number, Action action) {
    allocations_left = number;
    bool failed = false;
    try {
        action();
    } catch (const std::bad_alloc&) {
        failed = true;
    }
    allocations_left = 0;
    return failed;
}

/// The client's end of a connection to this server, which answers nothing by itself.
class TlsSocket final : public Socket {
public:
    TlsSocket(SSL* server, const bool& accepts, const bool& closed, const bool& takes_bytes)
        : server_(server), accepts_(accepts), closed_(closed), takes_bytes_(takes_bytes) {}

    int fd() const noexcept override { return 1; }
    std::optional<int> connect_result() noexcept override {
        return accepts_ ? std::optional{0} : std::nullopt;
    }
    std::ptrdiff_t send(std::string_view bytes) override {
        if (!takes_bytes_) return -EAGAIN;
        BIO_write(SSL_get_rbio(server_), bytes.data(), static_cast<int>(bytes.size()));
        (void)SSL_do_handshake(server_);
        return static_cast<std::ptrdiff_t>(bytes.size());
    }
    std::ptrdiff_t receive(std::span<char> bytes, Wait) override {
        const int length = BIO_read(SSL_get_wbio(server_), bytes.data(), static_cast<int>(bytes.size()));
        return length > 0 ? length : closed_ ? 0 : -EAGAIN;
    }
    bool has_input() const noexcept override { return closed_ || BIO_pending(SSL_get_wbio(server_)) > 0; }
    void drop_unsent() noexcept override {}

private:
    SSL* const server_;
    const bool& accepts_;
    const bool& closed_;
    const bool& takes_bytes_;
};

class TlsNetwork final : public Network {
public:
    SSL* server = nullptr;
    bool accepts = true;      ///< the server has accepted the TCP connection
    bool closed = false;      ///< the server has closed the TCP connection
    bool takes_bytes = true;  ///< otherwise the server reads nothing more

    Clock& clock() noexcept override { return clock_; }
    Entropy& entropy() noexcept override { return entropy_; }
    std::unique_ptr<Socket> connect(const Address&, std::chrono::milliseconds, int&) override {
        return std::make_unique<TlsSocket>(server, accepts, closed, takes_bytes);
    }
    void wait_for_descriptors(std::span<PollEntry>, Clock::time_point, Clock::time_point,
                              const std::stop_token&) override {}

private:
    ManualClock clock_{};
    ConstantEntropy entropy_{0xFF};
};

/// A connection that is ready, to a server with this version of TLS.
struct TlsConnection : TlsServerInMemory, testing::WithParamInterface<int> {
    void begin() {
        connection.reset();
        session = server(GetParam());
        network.server = session.get();
        connection = std::make_unique<Connection>(config, network,
                                                  Server::Addresses{Resolution::known({.addresses = {{}}})},
                                                  network.clock().now());
    }
    void make_ready() const {
        for (int step = 0; step < 10 && !connection->handshaking(); ++step) connection->advance();
        write("+PONG\r\n");
        connection->advance();
        ASSERT_TRUE(connection->ready()) << connection->detail();
    }
    void SetUp() override {
        begin();
        make_ready();
        connection->send_words(std::array<std::string_view, 2>{"GET", "key"});
        ASSERT_FALSE(connection->broken()) << connection->detail();
    }
    void write(std::string_view plain) const {
        ASSERT_GT(SSL_write(session.get(), plain.data(), static_cast<int>(plain.size())), 0);
    }

    /// Returns what the client has sent since the last call.
    std::string read() const {
        std::array<char, 4096> part{};
        std::string result;
        for (int length = 0; (length = SSL_read(session.get(), part.data(), part.size())) > 0;)
            result.append(part.data(), static_cast<std::size_t>(length));
        return result;
    }

    TlsNetwork network{};
    Session session{};
    const NodeConfig config = NodeConfig::of(endpoint("db.internal"), 50ms);
    std::unique_ptr<Connection> connection{};
};
INSTANTIATE_TEST_SUITE_P(EachVersion, TlsConnection, testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const auto& it) { return it.param == TLS1_2_VERSION ? "Tls12" : "Tls13"; });

// A server that is being stopped answers a command and ends the session. Without TLS, this reply counts. A
// proxy can leave the TCP connection open then, so that no byte comes any more.
TEST_P(TlsConnection, TakesAReplyThatTheEndOfTheSessionFollowsAndThenFails) {
    write("$5\r\nvalue\r\n");
    (void)SSL_shutdown(session.get());
    connection->advance();
    EXPECT_FALSE(connection->broken()) << connection->detail();
    ASSERT_NE(connection->pending().answer(), nullptr);
    EXPECT_EQ(connection->pending().answer()->reply.text, "value");
    EXPECT_TRUE(connection->has_input_or_end()) << "nothing can be received any more";
    EXPECT_TRUE(connection->poll_entry().writes) << "poll() must return at once";
    connection->advance();
    EXPECT_TRUE(connection->broken());
    EXPECT_EQ(connection->detail(), "TLS: closed by the server");
}

TEST_P(TlsConnection, FailsAtTheEndOfTheSession) {
    (void)SSL_shutdown(session.get());
    connection->advance();
    EXPECT_TRUE(connection->broken());
}

TEST_P(TlsConnection, FailsBehindAReplyIfItIsUsedAfterTheEndOfTheSession) {
    write("$5\r\nvalue\r\n");
    (void)SSL_shutdown(session.get());
    connection->advance();
    ASSERT_NE(connection->pending().answer(), nullptr);
    connection->send_words(std::array<std::string_view, 2>{"GET", "another key"});
    EXPECT_TRUE(connection->broken());
    EXPECT_EQ(connection->detail(), "TLS: closed by the server");
}

TEST_P(TlsConnection, FailsBehindAReplyAtTheEndOfTheTcpConnection) {
    write("$5\r\nvalue\r\n");
    (void)SSL_shutdown(session.get());
    network.closed = true;
    connection->advance();
    EXPECT_FALSE(connection->broken()) << connection->detail();
    connection->advance();
    EXPECT_TRUE(connection->broken());
}

TEST_P(TlsConnection, TakesNoReplyThatIsIncompleteAtTheEnd) {
    write("$5\r\nval");
    (void)SSL_shutdown(session.get());
    network.closed = true;
    connection->advance();
    EXPECT_EQ(connection->pending().answer(), nullptr);
    connection->advance();
    EXPECT_TRUE(connection->broken());
}

struct ConnectionOverTls13 : TlsConnection {};
INSTANTIATE_TEST_SUITE_P(Only, ConnectionOverTls13, testing::Values(TLS1_3_VERSION));

// Each message demands an answer, which the client cannot send. The answers must not fill its memory.
TEST_P(ConnectionOverTls13, FailsIfTheServerDemandsAnswersWithoutReadingThem) {
    network.takes_bytes = false;
    for (int message = 0; message < 10'000 && !connection->broken(); ++message) {
        (void)SSL_key_update(session.get(), SSL_KEY_UPDATE_REQUESTED);
        (void)SSL_do_handshake(session.get());
        connection->advance();
    }
    EXPECT_TRUE(connection->broken());
}

// D1. OpenSSL has encrypted the command when the memory runs out. It must not be encrypted and sent again.
TEST_P(TlsConnection, SendsNoCommandTwiceWithoutMemory) {
    const std::string key(6000, 'k');
    bool failed = true;
    for (long number = 1; failed; ++number) {
        begin();
        make_ready();
        (void)read();
        failed = fails_at(number, [&] {
            connection->send_words(std::array<std::string_view, 2>{"GET", key});
        });
        EXPECT_EQ(connection->broken(), failed) << number;
        connection->advance();
        const auto sent = read();
        EXPECT_EQ(sent.find(key, sent.find(key) + 1), sent.npos) << number << ": sent twice";
    }
}

// A caller that goes on while the session has failed would otherwise find it so again and again.
TEST_P(TlsConnection, IsBrokenIfThereIsNoMemoryForTheReasonOfItsEnd) {
    const std::array<std::string_view, 2> command{"GET", "another key"};
    for (const bool asks : {false, true}) {
        bool failed = true;
        for (long number = 1; failed; ++number) {
            begin();
            make_ready();
            connection->send_words(std::array<std::string_view, 2>{"GET", "key"});
            write("$5\r\nvalue\r\n");
            (void)SSL_shutdown(session.get());
            connection->advance();
            ASSERT_FALSE(connection->broken()) << "the reply counts";
            failed =
                fails_at(number, [&] { asks ? connection->send_words(command) : connection->advance(); });
            EXPECT_TRUE(connection->broken()) << asks << ", " << number;
        }
    }
}

// A connection without a session would wait for the reply of a server that has received nothing.
TEST_P(TlsConnection, IsBrokenIfThereIsNoMemoryForItsSession) {
    bool failed = true;
    for (long number = 1; failed; ++number) {
        network.accepts = false;
        begin();
        network.accepts = true;
        failed = fails_at(number, [&] { connection->advance(); });
        EXPECT_EQ(connection->broken(), failed) << number;
    }
    make_ready();
}

}  // namespace
}  // namespace redlock::test::tls_connection_test
