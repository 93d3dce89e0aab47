// A real redis-server process that a test may freeze, kill and restart.
//
//     RedisServer server{RedisConfig{}.keeps_data()};
//     redlock::RedisNodes nodes{server.uri()};
//     ...
//     EXPECT_EQ(server.command({"EXISTS", "orders:42"}), "1");
//     server.freeze();
//
// It listens on a free port of 127.0.0.1, which remains reserved until the object is destroyed. The fixture
// itself connects by a unix socket and as an ACL user of its own. Therefore command() works whatever the test
// did to passwords, users and the port. An object belongs to one thread at a time, but any thread may call
// port(), uri() and name().
#pragma once

#include "support/child_process.hpp"
#include "support/redis_config.hpp"
#include "support/reserved_port.hpp"
#include "support/resp_connection.hpp"
#include "support/temporary_directory.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::support {

class RedisServer {
public:
    /// Returns when the server replies to PING. Throws std::runtime_error with its log if it does not.
    explicit RedisServer(RedisConfig config = {});

    /// Returns 0 if it listens on a unix socket only.
    std::uint16_t port() const noexcept {
        return config_.is_on_unix_socket() ? std::uint16_t{0} : port_.number();
    }
    std::filesystem::path socket() const { return directory_ / "redis.sock"; }

    /// Returns the URI for the library, with the password of the configuration or with the given user.
    std::string uri() const;
    std::string uri(std::string_view user, std::string_view password) const;
    /// Returns the name that the library reports: "127.0.0.1:40123", or the path of the socket.
    std::string name() const;

    pid_t pid() const noexcept { return process_ ? process_->pid() : 0; }
    bool running() { return process_ && process_->running(); }

    /// Sends SIGSTOP. The kernel still accepts connections, but the server does not reply.
    void freeze() { process().freeze(); }
    void thaw() { process().thaw(); }
    /// Sends SIGKILL, like a crash. Returns when the process is gone.
    void kill() { process().kill(); }
    /// Starts the server again on the same port, after killing it if it runs. It has the data on its disk:
    /// everything with keeps_data(), nothing otherwise.
    void restart();
    /// The same after wiping its disk.
    void restart_empty();

    /// Runs one command on a connection of its own, as a user with all permissions.
    std::string command(const std::vector<std::string>& words) const { return connect().ask(words); }
    /// Returns a field of INFO.
    std::string info(const std::string& section, const std::string& field) const;
    /// Returns such a connection, for MONITOR, CLIENT REPLY, MULTI and so on.
    RespConnection connect() const;

private:
    ChildProcess& process();
    void write_config() const;
    void start();
    bool answers() const;
    std::string address(std::string_view credentials) const;

    // Constant after construction.
    RedisConfig config_;
    TemporaryDirectory directory_;
    ReservedPort port_;

    std::optional<ChildProcess> process_;
};

}  // namespace redlock::support
