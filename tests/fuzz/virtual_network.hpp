// A Network whose servers are objects of this process, in virtual time. Time passes while the program waits,
// and a little with each call of a socket. A silent server costs no real time, a busy machine makes nothing
// late, and the same input always has the same effect.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/endpoint.hpp>
#include <redlock/entropy.hpp>

#include "os/network.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

namespace redlock::fuzz {

/// One connection, as both sides see it.
struct Stream {
    std::optional<int> connect_result{};  ///< see Socket::connect_result()
    std::string to_server{};
    std::string to_client{};
    std::size_t room =
        std::numeric_limits<std::size_t>::max();  ///< this many bytes can be sent to the server
    bool finished = false;                        ///< the server sends nothing any more
    bool closed_by_server = false;                ///< nor does it receive
    bool closed_by_client = false;
};

class Server {
public:
    /// A client connects. `connect_result` is set now or later.
    virtual void accept(std::shared_ptr<Stream> stream) = 0;
    /// Does everything that is due by now.
    virtual void act(Clock::time_point now) = 0;
    /// Returns when the server has something to do, if nothing is sent to it until then.
    virtual Clock::time_point next() const = 0;

protected:
    ~Server() = default;
};

class VirtualNetwork final : public Network, public Clock, public Entropy {
public:
    void add(Server& server) { servers_.push_back(&server); }

    /// Returns the address of a server. The first has the number 0. The number is the path of a unix socket,
    /// which needs no name resolution. It can also be the port 7000 and so on of an IPv4 address. Where there
    /// is no server, connections are refused up to the number 6, and hang from 7 on.
    static Endpoint endpoint(std::size_t server) { return {.unix_socket = std::to_string(server)}; }

    // ---- Network
    Clock& clock() noexcept override { return *this; }
    Entropy& entropy() noexcept override { return *this; }
    std::unique_ptr<Socket> connect(const Address& address, std::chrono::milliseconds longest_wait,
                                    int& error) override;
    void wait_for_descriptors(std::span<PollEntry> entries, time_point now, time_point until,
                              const std::stop_token& stop) override;
    std::unique_ptr<BackgroundTask> make_task(BackgroundTask::Function function) override;

    // ---- Clock
    time_point now() noexcept override { return now_; }
    void sleep_until(time_point until, std::stop_token stop) override;

    // ---- Entropy
    std::error_code fill(std::span<std::byte> out) noexcept override;

    // ---- Called by the sockets.

    /// A system call takes time.
    void tick() noexcept { now_ += std::chrono::microseconds{1}; }

    /// Lets time pass until `until`, or until `ready()`.
    template <class Ready>
    void pass_time(time_point until, Ready ready) {
        for (act(); !ready() && now_ < until; act()) now_ = std::max(now_, std::min(until, next()));
    }

private:
    void act();
    time_point next() const;

    std::vector<Server*> servers_{};
    time_point now_{std::chrono::hours{100}};  // a machine that has been up for a while
    std::minstd_rand random_{1};
};

}  // namespace redlock::fuzz
