// Rules A3, A7, A12, D7 and D11 against real servers that run and refuse to work. If one of three is such a
// server, the lock works, and the report says what is wrong with it.
#include "live_world.hpp"

#include <signal.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace redlock::test::unhealthy_nodes_live_test {
namespace {

constexpr auto* secret = "t0p-s3cret";

/// A server, and a client or a thread that may keep it unhealthy.
struct UnhealthyServer {
    explicit UnhealthyServer(const RedisConfig& config = {}) : server(config), uri(server.uri()) {}

    RedisServer server;
    std::string uri;
    std::optional<support::RespConnection> client{};
    std::jthread thread{};  // destroyed first
};

struct Condition {
    std::string name;
    Errc cause;  ///< as acquire() reports it
    std::function<std::unique_ptr<UnhealthyServer>()> start;
};
void PrintTo(const Condition& condition, std::ostream* out) {
    *out << condition.name;
}

/// A server with this configuration, to which this user connects with this password.
auto used_by(RedisConfig config, std::string user, std::string password) {
    return [=] {
        auto unhealthy = std::make_unique<UnhealthyServer>(config);
        unhealthy->uri = unhealthy->server.uri(user, password);
        return unhealthy;
    };
}

auto configured(RedisConfig config) {
    return [config] { return std::make_unique<UnhealthyServer>(config); };
}

/// A server that loads its data for a minute: one key at a time, with a pause after each. No test waits for
/// the end.
std::unique_ptr<UnhealthyServer> loading() {
    auto unhealthy = std::make_unique<UnhealthyServer>(
        RedisConfig{}.line("key-load-delay 1000000").line("loading-process-events-interval-bytes 1024"));
    auto& server = unhealthy->server;
    for (int i = 0; i < 60; ++i) (void)server.command({"SET", std::to_string(i), std::string(2'000, 'x')});
    (void)server.command({"CONFIG", "SET", "rdbcompression", "no"});
    if (server.command({"SAVE"}) != "OK") throw std::runtime_error("no SAVE");
    server.kill();
    unhealthy->thread = std::jthread{[&server](const std::stop_token& stop) {
        const std::stop_callback end{stop, [&server] { ::kill(server.pid(), SIGKILL); }};
        EXPECT_THROW(server.restart(), std::runtime_error);
    }};
    const auto answers_loading = [port = server.port()] {
        try {
            return support::RespConnection{port}.ask({"PING"}).starts_with("(error) LOADING");
        } catch (const std::exception&) {
            return false;
        }
    };
    if (!wait_until(answers_loading)) throw std::runtime_error("it does not load");
    return unhealthy;
}

/// A server that runs an endless script, which SCRIPT KILL can end.
std::unique_ptr<UnhealthyServer> busy() {
    auto unhealthy = std::make_unique<UnhealthyServer>(RedisConfig{}.line("lua-time-limit 1"));
    auto& server = unhealthy->server;
    unhealthy->thread = std::jthread{[&server](const std::stop_token& stop) {
        auto connection = server.connect();
        connection.send({"EVAL", "while true do end", "0"});
        std::condition_variable_any never;
        std::mutex mutex;
        std::unique_lock guard{mutex};
        never.wait(guard, stop, [] { return false; });
        server.kill();
    }};
    const auto answers_busy = [port = server.port()] {
        return support::RespConnection{port}.ask({"PING"}).starts_with("(error) BUSY");
    };
    if (!wait_until(answers_busy)) throw std::runtime_error("it is not busy");
    return unhealthy;
}

/// A server with a password that accepts no further client.
std::unique_ptr<UnhealthyServer> full() {
    auto unhealthy = std::make_unique<UnhealthyServer>(RedisConfig{}.password(secret));
    auto& client = unhealthy->client.emplace(unhealthy->server.connect());
    if (client.ask({"CONFIG", "SET", "maxclients", "1"}) != "OK") throw std::runtime_error("no maxclients");
    unhealthy->uri = unhealthy->server.uri("", secret);
    return unhealthy;
}

std::vector<Condition> conditions() {
    const auto closed = RedisConfig{}.password(secret);
    const auto worker = [](const std::string& rules) {
        return RedisConfig{}.no_default_user().user(std::string{"worker on >"} + secret + " " + rules);
    };
    return {
        {"WithoutItsPassword", Errc::authentication_failed,
         [closed] {
             auto unhealthy = std::make_unique<UnhealthyServer>(closed);
             unhealthy->uri = unhealthy->server.name();
             return unhealthy;
         }},
        {"WithAWrongPassword", Errc::authentication_failed, used_by(closed, "", "not the s3cret")},
        {"WithAnUnknownUser", Errc::authentication_failed, used_by(closed, "nobody", secret)},
        {"WithAUserThatIsOff", Errc::authentication_failed,
         used_by(RedisConfig{}.user(std::string{"idler off >"} + secret + " ~* +@all"), "idler", secret)},
        {"WithAPasswordWhereNoneIsKnown", Errc::authentication_failed, used_by({}, "", secret)},
        {"WithAUserThatMayNotSet", Errc::permission_denied,
         used_by(worker("~* +@all -set"), "worker", secret)},
        {"WithAUserThatMayNotUseTheKey", Errc::permission_denied,
         used_by(worker("~other:* +@all"), "worker", secret)},
        {"ThatIsAReplica", Errc::read_only, configured(RedisConfig{}.replica_of(1))},
        {"OutOfMemory", Errc::out_of_memory, configured(RedisConfig{}.max_memory("1"))},
        {"ThatLoads", Errc::loading, loading},
        {"ThatIsBusyWithAScript", Errc::server_busy, busy},
        {"WithTooManyClients", Errc::connection_failed, full},
        {"ThatLacksReplicas", Errc::server_busy, configured(RedisConfig{}.line("min-replicas-to-write 1"))},
        {"WithoutSet", Errc::server_error, configured(RedisConfig{}.line("rename-command SET \"\""))},
        {"WithSetUnderAnotherName", Errc::server_error,
         configured(RedisConfig{}.line("rename-command SET PUT"))},
    };
}

struct AnUnhealthyNode : testing::TestWithParam<Condition> {};
INSTANTIATE_TEST_SUITE_P(UnhealthyNodes, AnUnhealthyNode, testing::ValuesIn(conditions()), by_name);

// A3, A12, D7, D11. With one such node of three, the lock works, and the report says what is wrong with the
// node.
TEST_P(AnUnhealthyNode, IsReportedAndTheLockStillWorks) {
    const auto unhealthy = GetParam().start();
    Cluster servers{2};
    RedisNodes nodes{{unhealthy->uri, servers[0].uri(), servers[1].uri()}, {.node_timeout = 2s}};
    Lock lock{nodes, the_resource, {.ttl = 1min}};
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_EQ(count(result, Vote::granted), 2U);
    EXPECT_THAT(result, Reports(0, GetParam().cause));
    EXPECT_THAT(result.message(),
                HasSubstr(unhealthy->server.name() + " " + std::error_code{GetParam().cause}.message()));
    EXPECT_THAT(result.message() + std::string{result.nodes()[0].detail}, Not(HasSubstr("s3cret"))) << "D11";
    EXPECT_THAT(lock.extend(2min), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    for (auto& server : servers) EXPECT_EQ(server.command({"DBSIZE"}), "0");
}

}  // namespace
}  // namespace redlock::test::unhealthy_nodes_live_test
