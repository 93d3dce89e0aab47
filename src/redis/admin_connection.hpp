// One connection to one node on which plain words are asked: what an operator wants to know, and no lock.
//
//     AdminConnection admin{Endpoint::parse("redis://10.0.0.1"), 50ms};
//     const auto info = admin.ask({"INFO"});
//     if (info) read(info.reply.text); else log(info.cause.message(), info.detail);
//
// Exported for the command alone; not installed. It goes by the library's own Connection, so TLS, AUTH,
// SELECT, unix sockets and the bounds in time are those of the locks. One thread at a time.
#pragma once

#include <redlock/detail/reply.hpp>
#include <redlock/endpoint.hpp>

#include "os/os_network.hpp"
#include "redis/connection.hpp"

#include <chrono>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock {

/// What a node said to one command.
struct Answer {
    detail::Reply reply{};
    std::error_code cause{};  ///< why there is no usable reply; that of an error reply, too
    std::string detail{};     ///< the server's or the system's own words, without secrets
    std::chrono::nanoseconds
        took{};  ///< from the first byte sent; with the connecting where it was the first

    explicit operator bool() const noexcept { return !cause; }
};

class AdminConnection {
public:
    /// No I/O. Each command has `budget` in all. Throws std::invalid_argument where TLS cannot be had as the
    /// endpoint wants it.
    AdminConnection(const Endpoint& endpoint, std::chrono::milliseconds budget);
    ~AdminConnection();
    AdminConnection(const AdminConnection&) = delete;
    AdminConnection& operator=(const AdminConnection&) = delete;

    /// Connects where that was not done yet: no error once the server has let us in and answers.
    Answer connect();

    /// Blocks for the budget at most. What once failed, other than by a reply of the server, fails at once
    /// from then on.
    Answer ask(std::span<const std::string_view> words);
    Answer ask(std::initializer_list<std::string_view> words) {
        return ask(std::span{words.begin(), words.size()});
    }

    const Endpoint& endpoint() const noexcept { return config_.endpoint; }

private:
    template <class Condition>
    void wait(Clock::time_point deadline, Condition over);
    bool connect_by(Clock::time_point deadline);
    Answer outcome(Clock::time_point start);

    const NodeConfig config_;
    OsNetwork network_{};
    std::unique_ptr<Connection> connection_{};
};

}  // namespace redlock
