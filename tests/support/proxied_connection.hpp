// One connection through a TcpProxy: a socket to the client, one to the server, and the bytes between them.
// None of its functions blocks. Only the thread of the proxy calls them.
#pragma once

#include "support/command_reader.hpp"

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::support {

using ProxyTime = std::chrono::steady_clock::time_point;

/// What the proxy currently does to the bytes.
struct Faults {
    using Span = std::chrono::nanoseconds;
    Span delay{};
    std::optional<Span> trickle{};
    std::optional<std::string> replacement{};
    std::optional<std::size_t> cut_after{};
    bool hold = false;
    bool hole = false;
};

/// One direction: the bytes that were read and not yet passed on.
class Stream {
public:
    void push(std::string bytes, ProxyTime due);
    /// Makes all of it due now.
    void hurry(ProxyTime now);
    /// Drops everything because the sink is gone.
    void clear();

    /// Sends what is due to `sink`, at most `most` bytes. With `trickle`, it sends byte by byte with this
    /// pause. Returns false if the sink is broken.
    bool pass_to(int sink, ProxyTime now, std::size_t most, std::optional<Faults::Span> trickle);
    /// Returns how many bytes the last pass_to() has sent.
    std::size_t passed() const noexcept { return passed_; }

    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return queue_.empty(); }
    bool full() const noexcept { return size_ >= capacity; }
    /// Returns true if the sink accepts no more bytes for now.
    bool blocked() const noexcept { return blocked_; }
    /// Returns when the next byte is due, or the maximum if there is none.
    ProxyTime next_due() const;

    bool ended = false;       ///< the source has closed
    bool end_passed = false;  ///< and the sink was notified

private:
    static constexpr std::size_t capacity = 16U << 20U;
    struct Chunk {
        ProxyTime due;
        std::string bytes;
    };

    std::deque<Chunk> queue_{};
    std::size_t begun_ = 0;  // bytes of the first chunk that were already passed on
    std::size_t size_ = 0;
    std::size_t passed_ = 0;
    ProxyTime next_byte_{};
    bool blocked_ = false;
};

class ProxiedConnection {
public:
    /// Takes ownership of the socket.
    ProxiedConnection(int client, std::size_t number, const Faults& faults);
    ~ProxiedConnection();
    ProxiedConnection(const ProxiedConnection&) = delete;
    ProxiedConnection& operator=(const ProxiedConnection&) = delete;

    // ---- Called before and after ppoll().
    pollfd client_events(const Faults& faults) const noexcept;
    pollfd server_events(const Faults& faults) const noexcept;
    void polled(short client, short server) noexcept;
    ProxyTime next_due(const Faults& faults) const;

    /// Reads and passes on the available bytes. Calls `seen(words)` for each command.
    template <class Seen>
    void pass_on(ProxyTime now, const Faults& faults, std::uint16_t server_port, Seen seen) {
        if (!prepare(faults, server_port)) return;
        const auto request = receive(client_, requests_);
        reader_.take(request, seen);
        if (!request.empty()) requests_.push(request, now + faults.delay);
        take_reply(receive(server_, replies_), now, faults);
        forward(now, faults);
    }

    std::size_t number() const noexcept { return number_; }
    std::size_t waiting() const noexcept { return requests_.size() + replies_.size(); }
    std::size_t request_bytes() const noexcept { return request_bytes_; }
    std::size_t reply_bytes() const noexcept { return reply_bytes_; }
    bool over() const noexcept { return client_.fd < 0; }

    // ---- Faults of this connection.
    void limit(const Faults& faults);
    void forget() noexcept { forgotten_ = true; }
    void reset() noexcept;
    void heal(ProxyTime now, const Faults& faults);

private:
    struct Socket {
        int fd = -1;
        short heard = 0;
        bool deaf = false;  // broken inside the black hole, so nobody may learn of it
        bool gone = false;  // broken
    };

    pollfd events(const Socket& socket, const Stream& from, const Stream& to,
                  const Faults& faults) const noexcept;
    bool in_hole(const Faults& faults) const noexcept { return faults.hole || forgotten_; }
    bool prepare(const Faults& faults, std::uint16_t server_port);
    void listen_in_the_hole() noexcept;
    bool connect(std::uint16_t server_port);
    std::string receive(Socket& from, Stream& stream);
    void take_reply(std::string bytes, ProxyTime now, const Faults& faults);
    void forward(ProxyTime now, const Faults& faults);
    void forward_requests(ProxyTime now, const Faults& faults);
    void forward_replies(ProxyTime now, const Faults& faults);
    void pass_ends();
    void close() noexcept;

    // Constant after construction.
    const std::size_t number_;

    Socket client_{};
    Socket server_{};
    bool connecting_ = false;
    bool forgotten_ = false;
    Stream requests_{};
    Stream replies_{};
    CommandReader reader_{};
    std::size_t request_bytes_ = 0;
    std::size_t reply_bytes_ = 0;
    std::optional<std::size_t> cut_at_{};  // the value of reply_bytes_ at which it is closed
};

}  // namespace redlock::support
