// A real redis-server process that a test may freeze, kill and restart.
//
//     RedisServer server{RedisConfig{}.keeps_data()};
//     redlock::RedisNodes nodes{server.uri()};
//     ...
//     EXPECT_EQ(server.command({"EXISTS", "orders:42"}), "1");
//     server.freeze();
//
// It listens on a free port of 127.0.0.1, which stays its own until the object ends. The fixture itself comes
// in by a unix socket and as an ACL user of its own, so command() works whatever the test did to passwords,
// users and the port. One thread at a time; port(), uri() and name() may be asked by all.
#pragma once

#include "support/child_process.hpp"
#include "support/redis_config.hpp"
#include "support/reserved_port.hpp"
#include "support/resp_connection.hpp"
#include "support/temporary_directory.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::support {

class RedisServer {
public:
    /// Returns when it answers PING; throws std::runtime_error with the server's log when it does not.
    explicit RedisServer(RedisConfig config = {});

    /// 0 when it is on a unix socket only.
    std::uint16_t port() const noexcept {
        return config_.is_on_unix_socket() ? std::uint16_t{0} : port_.number();
    }
    std::filesystem::path socket() const { return directory_ / "redis.sock"; }

    /// As the library takes it, with the password of the configuration or with the user given.
    std::string uri() const;
    std::string uri(std::string_view user, std::string_view password) const;
    /// As the library reports it: "127.0.0.1:40123", or the path of the socket.
    std::string name() const;

    pid_t pid() const noexcept { return process_ ? process_->pid() : 0; }
    bool running() { return process_ && process_->running(); }

    /// SIGSTOP: connections are still accepted by the kernel, nothing is answered.
    void freeze() { process().freeze(); }
    void thaw() { process().thaw(); }
    /// SIGKILL, as a crash; returns when the process is gone.
    void kill() { process().kill(); }
    /// Starts it again on the same port (killing it first if it runs), with what it has on disk:
    /// everything with keeps_data(), else nothing.
    void restart();
    /// The same with its disk wiped.
    void restart_empty();

    /// Runs one command on a connection of its own, as a user with all permissions.
    std::string command(const std::vector<std::string>& words) const { return connect().ask(words); }
    /// A field of INFO.
    std::string info(const std::string& section, const std::string& field) const;
    /// Such a connection, to keep: for MONITOR, CLIENT REPLY, MULTI ...
    RespConnection connect() const;

private:
    ChildProcess& process();
    void write_config() const;
    void start();
    bool answers() const;
    std::string log() const;
    std::string address(std::string_view credentials) const;

    // Constant after construction.
    RedisConfig config_;
    TemporaryDirectory directory_;
    ReservedPort port_;

    std::optional<ChildProcess> process_;
};

}  // namespace redlock::support
