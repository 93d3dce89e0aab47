// A connection to a Redis server that uses neither the library under test nor hiredis.
#pragma once

#include "support/redis_reply.hpp"
#include "support/reply_reader.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::support {

/// Replies are returned as text_of(RedisReply), or as a RedisReply. All functions throw std::runtime_error if
/// the server does not reply in time or the connection breaks.
class RespConnection {
public:
    using Timeout = std::chrono::nanoseconds;

    /// Connects to a port of 127.0.0.1.
    explicit RespConnection(std::uint16_t port, Timeout timeout = std::chrono::seconds{5});
    /// Connects to a unix socket.
    explicit RespConnection(const std::filesystem::path& socket, Timeout timeout = std::chrono::seconds{5});
    ~RespConnection();
    RespConnection(RespConnection&& other) noexcept;
    RespConnection(const RespConnection&) = delete;
    RespConnection& operator=(const RespConnection&) = delete;

    /// Send a command and wait for its reply.
    std::string ask(const std::vector<std::string>& words);
    RedisReply ask_for_reply(const std::vector<std::string>& words);

    /// The two halves of ask(), for pipelines and for unsolicited replies (MONITOR, SUBSCRIBE).
    void send(const std::vector<std::string>& words);
    std::string read();
    RedisReply read_reply();

private:
    void write_all(std::string_view bytes);
    void wait_for(short event, std::chrono::steady_clock::time_point deadline) const;
    void receive(std::chrono::steady_clock::time_point deadline);

    int socket_;
    Timeout timeout_;
    ReplyReader reader_{ReplyReader::Arrays::are_replies};
};

}  // namespace redlock::support
