// One connection to one node for the commands of an operator, such as INFO. Locks do not use it.
//
//     AdminConnection admin{Endpoint::parse("redis://10.0.0.1"), 50ms};
//     const auto info = admin.ask({"INFO"});
//     if (info) read(info.reply.text); else log(info.cause.message(), info.detail);
//
// It uses the library's own Connection, so TLS, AUTH, SELECT, unix sockets and time limits work as they do
// for locks. Only one thread at a time may use it.
#pragma once

#include "os/os_network.hpp"
#include "redis/connection.hpp"
#include "redis/redis_cluster.hpp"
#include "wire/reply.hpp"

#include <redlock/detail/not_copied.hpp>
#include <redlock/endpoint.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace redlock::tool {

/// The name of a command and its arguments.
using Words = std::vector<std::string_view>;

/// The outcome of one command.
struct Answer {
    detail::Reply reply{};
    std::error_code cause{};          ///< why there is no usable reply; also set for an error reply
    std::string detail{};             ///< the text of the server or the system, without secrets
    std::chrono::nanoseconds took{};  ///< duration of the call, including the time to connect if it did

    explicit operator bool() const noexcept { return !cause; }
};

class AdminConnection : detail::NotCopied {
public:
    /// Does no I/O. Each command takes at most `timeout`, including the time to connect. If the endpoint is a
    /// Redis Cluster, the commands go to the first of its seeds that answers. Throws
    /// std::invalid_argument if TLS is not possible as the endpoint demands it.
    AdminConnection(const Endpoint& endpoint, std::chrono::milliseconds timeout);

    /// Connects unless that was done before. Returns no error if the server has accepted the connection and
    /// answers.
    Answer connect() { return ask({}); }

    /// Sends a command, unless there are no words, and returns the reply. Blocks for `timeout` at most. After
    /// a failure that was not a reply of the server, every further call fails at once.
    Answer ask(const Words& words);

    const Endpoint& endpoint() const noexcept { return config_.endpoint; }
    /// Returns the endpoint of the server that was connected last: a seed, if the endpoint is a Redis
    /// Cluster.
    const Endpoint& server() const noexcept { return servers_[tried_]->endpoint; }

private:
    void wait(Clock::time_point deadline, const std::function<bool()>& over);
    bool connect_by(Clock::time_point deadline);

    const NodeConfig config_;
    const std::vector<ClusterServer> servers_;  // the seeds of a Cluster, or the one server
    std::size_t tried_ = 0;                     // the index of the last one that was tried
    OsNetwork network_{};
    std::unique_ptr<Connection> connection_{};
};

}  // namespace redlock::tool
