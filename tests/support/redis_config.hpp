// The configuration of a server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace redlock::support {

///     RedisServer server{RedisConfig{}.password("s3cret").keeps_data()};
///
/// Without a word: TCP on a free port, no password, nothing kept on disk.
class RedisConfig {
public:
    /// The default user has to give it.
    RedisConfig& password(std::string password) {
        password_ = std::move(password);
        return line("requirepass " + quoted(password_));
    }

    /// An ACL user: user("worker on >s3cret ~* +set +get").
    RedisConfig& user(const std::string& rules) { return line("user " + rules); }

    /// Every client needs a user name and a password.
    RedisConfig& no_default_user() { return user("default off"); }

    /// Every write is on disk before it is answered: a restart brings all keys back.
    RedisConfig& keeps_data() {
        return line("appendonly yes").line("appendfsync always").line("auto-aof-rewrite-percentage 0");
    }

    /// max_memory("1"): out of memory from the start.
    RedisConfig& max_memory(const std::string& bytes) { return line("maxmemory " + bytes); }

    /// A read-only replica of the server on that port.
    RedisConfig& replica_of(std::uint16_t port) {
        return line("replicaof 127.0.0.1 " + std::to_string(port));
    }

    /// A Sentinel in place of a server: of "mymaster", which is on that port; two of them decide.
    RedisConfig& sentinel_of(std::uint16_t port) {
        is_sentinel_ = true;
        return line("sentinel monitor mymaster 127.0.0.1 " + std::to_string(port) + " 2")
            .line("sentinel down-after-milliseconds mymaster 3000")
            .line("sentinel failover-timeout mymaster 5000");
    }

    /// Its wall clock is wrong by as many seconds as the file has at the time, or stands where it has
    /// (@ and microseconds).
    RedisConfig& clock_set_by(std::filesystem::path file) {
        clock_file_ = std::move(file);
        return *this;
    }

    /// Reached through a unix socket in a private directory, and not by TCP.
    RedisConfig& on_unix_socket() {
        unix_socket_ = true;
        return *this;
    }

    /// A line of redis.conf as it is.
    RedisConfig& line(const std::string& line) {
        lines_ += line + '\n';
        return *this;
    }

    const std::string& lines() const noexcept { return lines_; }
    const std::string& password() const noexcept { return password_; }
    const std::filesystem::path& clock_file() const noexcept { return clock_file_; }
    bool is_on_unix_socket() const noexcept { return unix_socket_; }
    bool is_sentinel() const noexcept { return is_sentinel_; }

    /// A word of redis.conf with any bytes in it.
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
