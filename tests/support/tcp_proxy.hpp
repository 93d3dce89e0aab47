// A TCP proxy between the library and one real server. Tests use it to inject network faults.
//
//     TcpProxy link{server.port()};
//     redlock::RedisNodes nodes{{link.name(), ...}};
//     link.hold();                                // replies stay in the proxy from now on
//     (void)lock.acquire();
//     link.release();                             // the replies arrive, late
//     link.heal();                                // no faults any more
//
// The proxy runs in a thread of its own. It sleeps in ppoll() while nothing arrives, and passes bytes on at
// once, which takes about ten microseconds each way. Every function has taken effect when it returns. Faults
// such as delay() and trickle() add up until heal(). Below, a "reply" is the result of one read() of the
// proxy. If the client sends one command at a time, as the library does, that is exactly one reply of the
// server.
//
// Any thread may call any function.
#pragma once

#include "support/proxied_connection.hpp"
#include "support/reserved_port.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace redlock::support {

/// The traffic since the proxy was created.
struct Traffic {
    std::size_t connections = 0;    ///< accepted
    std::size_t open = 0;           ///< of these, open now
    std::size_t commands = 0;       ///< read in full from the client; not counted if the bytes are not RESP
    std::size_t request_bytes = 0;  ///< passed on to the server
    std::size_t reply_bytes = 0;    ///< passed on to the client
    std::size_t waiting_bytes = 0;  ///< read and not yet passed on
};

/// A command that a client sent, and the number of its connection, counted from 1.
struct SeenCommand {
    std::size_t connection;
    std::vector<std::string> words;  ///< long words are truncated to 64 bytes
};

class TcpProxy {
public:
    using Span = std::chrono::nanoseconds;

    /// Listens on a free port of 127.0.0.1, for the server on `server_port` of 127.0.0.1. The server may
    /// start, stop and freeze at any time. If it does not run, a client is accepted and then reset.
    explicit TcpProxy(std::uint16_t server_port);
    ~TcpProxy();
    TcpProxy(const TcpProxy&) = delete;
    TcpProxy& operator=(const TcpProxy&) = delete;

    std::uint16_t port() const noexcept { return port_.number(); }
    /// Returns the name that the library accepts and reports: "127.0.0.1:40123".
    std::string name() const { return "127.0.0.1:" + std::to_string(port()); }

    // ---- When bytes are passed on.

    /// Delays every byte by this time.
    void delay(Span each_way);
    /// Passes replies on byte by byte, each byte in a segment of its own and `pause` after the previous one.
    void trickle(Span pause = {});
    /// Reads replies and keeps them until release().
    void hold();
    void release();
    /// Passes on nothing in either direction, without an error. New connections are accepted. What was sent
    /// meanwhile is passed on after heal(), unless its connection was closed by then.
    void black_hole();
    /// Turns the current connections into black holes for good. Later connections work. A firewall that has
    /// lost its state behaves like this.
    void forget();

    // ---- Broken connections.

    /// Closes each connection, including later ones, after this number of further reply bytes.
    void cut_after(std::size_t reply_bytes);
    /// Resets all current connections.
    void reset();
    /// Refuses new connections. The current connections continue.
    void refuse();

    // ---- Wrong replies.

    /// Replaces each reply by `text`.
    void replace_replies(std::string text);

    /// Ends all faults: what was kept is passed on, and new connections are accepted.
    void heal();

    // ---- What the proxy has seen.

    Traffic traffic() const;
    /// Records commands from now on.
    void record();
    /// Returns the recorded commands in the order in which they were read.
    std::vector<SeenCommand> commands() const;

private:
    using Connections = std::vector<std::unique_ptr<ProxiedConnection>>;

    void run() noexcept;
    void carry_out_orders();
    void pass_on();
    void wait();
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

    // Used by the proxy's thread only, which also runs the orders.
    int listener_ = -1;
    bool stopping_ = false;
    bool recording_ = false;
    Faults faults_{};
    Connections connections_{};
    Traffic traffic_{};
    std::vector<SeenCommand> seen_{};

    std::thread thread_{};
};

/// Makes a proxy before each of the servers. Returns the names of the proxies.
template <class Servers>
std::vector<std::string> names_of(std::deque<TcpProxy>& links, Servers& servers) {
    std::vector<std::string> names;
    for (auto& server : servers) names.push_back(links.emplace_back(server.port()).name());
    return names;
}

}  // namespace redlock::support
