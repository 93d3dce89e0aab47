// A TCP proxy between the library and one real server, into which tests inject the faults of networks.
//
//     TcpProxy link{server.port()};
//     redlock::RedisNodes nodes{{link.name(), ...}};
//     link.hold();                                // replies stay in the proxy from now on
//     (void)lock.acquire();
//     link.release();                             // the replies arrive, late
//     link.heal();                                // without faults again
//
// It runs in a thread of its own, sleeps in ppoll() while nothing moves and passes bytes on at once: some ten
// microseconds each way. Every function has taken effect when it returns. Faults add up (delay and trickle
// ...) until heal(). "Reply" below is what one read() of the proxy brings: with a client that sends one
// command at a time, as the library does, that is one reply to the byte.
//
// All of it may be called by all threads.
#pragma once

#include "support/proxied_connection.hpp"
#include "support/reserved_port.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace redlock::support {

/// What has passed since the proxy was made.
struct Traffic {
    std::size_t connections = 0;  ///< accepted
    std::size_t open = 0;         ///< of these, open now
    std::size_t commands = 0;     ///< read in full from the client; not counted where the bytes are not RESP
    std::size_t request_bytes = 0;  ///< passed on to the server
    std::size_t reply_bytes = 0;    ///< passed on to the client
    std::size_t waiting_bytes = 0;  ///< read and not passed on yet
};

/// A command that a client sent, and which of its connections brought it, counted from 1.
struct SeenCommand {
    std::size_t connection;
    std::vector<std::string> words;  ///< of long ones the first 64 bytes
};

class TcpProxy {
public:
    using Span = std::chrono::nanoseconds;

    /// Listens on a free port of 127.0.0.1, for the server on `server_port` of 127.0.0.1. That may come, go
    /// and freeze: a client of a server that is not there is accepted, and then reset.
    explicit TcpProxy(std::uint16_t server_port);
    ~TcpProxy();
    TcpProxy(const TcpProxy&) = delete;
    TcpProxy& operator=(const TcpProxy&) = delete;

    std::uint16_t port() const noexcept { return port_.number(); }
    /// As the library takes and reports it: "127.0.0.1:40123".
    std::string name() const { return "127.0.0.1:" + std::to_string(port()); }

    // ---- What passes, and when.

    /// Every byte arrives so much later.
    void delay(Span each_way);
    /// Replies arrive byte by byte, each in a segment of its own and `pause` after the last.
    void trickle(Span pause = {});
    /// Replies are read and kept until release().
    void hold();
    void release();
    /// Nothing passes in either direction, without an error; new connections are accepted. What was sent
    /// meanwhile passes after heal(), unless its connection has been given up by then.
    void black_hole();
    /// The connections there are become black holes for good; those to come are fine: as behind a firewall
    /// that has forgotten them.
    void forget();

    // ---- Broken connections.

    /// Each connection, also those to come, is closed after another so many bytes of reply.
    void cut_after(std::size_t reply_bytes);
    /// All connections there are get a reset.
    void reset();
    /// Connecting is refused. The connections there are go on.
    void refuse();

    // ---- Wrong replies.

    /// Each reply is replaced by `text`.
    void replace_replies(std::string text);

    /// Without faults again: what was kept is passed on, new connections are accepted.
    void heal();

    // ---- What it has seen.

    Traffic traffic() const;
    /// Remembers commands from now on.
    void record();
    /// What it remembers, in the order read.
    std::vector<SeenCommand> commands() const;

private:
    using Connections = std::vector<std::unique_ptr<ProxiedConnection>>;

    void run() noexcept;
    void carry_out_orders();
    void pass_on();
    void wait();
    void listen();
    void accept_all();
    void in_thread(std::function<void()> order) const;
    void with_faults(const std::function<void(Faults&)>& change);

    // Constant after construction.
    const std::uint16_t server_port_;
    const ReservedPort port_{};
    const int wake_up_;

    // Guarded by mutex_.
    mutable std::mutex mutex_{};
    mutable std::condition_variable carried_out_{};
    mutable std::vector<std::function<void()>> orders_{};
    mutable std::size_t ordered_ = 0;
    std::size_t done_ = 0;

    // The thread's own; orders are carried out there.
    int listener_ = -1;
    bool stopping_ = false;
    bool recording_ = false;
    Faults faults_{};
    Connections connections_{};
    Traffic traffic_{};
    std::vector<SeenCommand> seen_{};

    std::thread thread_{};
};

}  // namespace redlock::support
