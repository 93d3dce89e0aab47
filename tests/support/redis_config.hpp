// The configuration of a server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace redlock::support {

/// A builder of a redis.conf:
///
///     RedisServer server{RedisConfig{}.password("s3cret").keeps_data()};
///
/// By default, the server has a free TCP port and no password, and keeps nothing on disk.
class RedisConfig {
public:
    /// The default user must authenticate with this password.
    RedisConfig& password(std::string password) {
        password_ = std::move(password);
        return line("requirepass " + quoted(password_));
    }

    /// Adds an ACL user: user("worker on >s3cret ~* +set +get").
    RedisConfig& user(const std::string& rules) { return line("user " + rules); }

    /// Every client needs a user name and a password.
    RedisConfig& no_default_user() { return user("default off"); }

    /// The server writes each change to disk before it replies, so that a restart restores all keys.
    RedisConfig& keeps_data() {
        return line("appendonly yes").line("appendfsync always").line("auto-aof-rewrite-percentage 0");
    }

    /// max_memory("1") makes the server run out of memory from the start.
    RedisConfig& max_memory(const std::string& bytes) { return line("maxmemory " + bytes); }

    /// Makes it a read-only replica of the server on that port.
    RedisConfig& replica_of(std::uint16_t port) {
        return line("replicaof 127.0.0.1 " + std::to_string(port));
    }

    /// Makes it a Sentinel of the master "mymaster" on that port, with a quorum of two.
    RedisConfig& sentinel_of(std::uint16_t port) {
        is_sentinel_ = true;
        return line("sentinel monitor mymaster 127.0.0.1 " + std::to_string(port) + " 2")
            .line("sentinel down-after-milliseconds mymaster 3000")
            .line("sentinel failover-timeout mymaster 5000");
    }

    /// The wall clock of the server is wrong by the number of seconds in the file, which may change at any
    /// time. If the file has `@` and a number of microseconds, the clock stands still there.
    RedisConfig& clock_set_by(std::filesystem::path file) {
        clock_file_ = std::move(file);
        return *this;
    }

    /// The server listens on a unix socket in a private directory, and not on TCP.
    RedisConfig& on_unix_socket() {
        unix_socket_ = true;
        return *this;
    }

    /// Adds a line of redis.conf as it is.
    RedisConfig& line(const std::string& line) {
        lines_ += line + '\n';
        return *this;
    }

    const std::string& lines() const noexcept { return lines_; }
    const std::string& password() const noexcept { return password_; }
    const std::filesystem::path& clock_file() const noexcept { return clock_file_; }
    bool is_on_unix_socket() const noexcept { return unix_socket_; }
    bool is_sentinel() const noexcept { return is_sentinel_; }

    /// Returns a word of redis.conf that may contain any bytes.
    static std::string quoted(const std::string& word) {
        constexpr auto* digits = "0123456789abcdef";
        std::string result = "\"";
        for (const char character : word) {
            const auto byte = static_cast<unsigned char>(character);
            result += "\\x";
            result += digits[byte >> 4U];
            result += digits[byte & 0xFU];
        }
        return result + '"';
    }

private:
    std::string lines_{};
    std::string password_{};
    std::filesystem::path clock_file_{};
    bool unix_socket_ = false;
    bool is_sentinel_ = false;
};

}  // namespace redlock::support
