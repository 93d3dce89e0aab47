#include "support/redis_server.hpp"

#include "support/process_files.hpp"
#include "support/wait_until.hpp"

#include <chrono>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace redlock::support {

namespace {

constexpr std::string_view unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

std::string percent_encoded(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string result;
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        if (unreserved.find(character) != std::string_view::npos)
            result += character;
        else
            result += {'%', digits[byte >> 4U], digits[byte & 0xFU]};
    }
    return result;
}

/// The user that the fixture logs in as. A test may take all permissions from the default user.
constexpr auto* fixture = "fixture";

}  // namespace

RedisServer::RedisServer(RedisConfig config) : config_(std::move(config)) {
    write_config();
    start();
}

std::string RedisServer::uri() const {
    const auto& password = config_.password();
    return address(password.empty() ? "" : ":" + percent_encoded(password) + "@");
}

std::string RedisServer::uri(std::string_view user, std::string_view password) const {
    return address(percent_encoded(user) + ":" + percent_encoded(password) + "@");
}

std::string RedisServer::address(std::string_view credentials) const {
    return (config_.is_on_unix_socket() ? "unix://" : "redis://") + std::string{credentials} + name();
}

std::string RedisServer::name() const {
    return config_.is_on_unix_socket() ? socket().string() : "127.0.0.1:" + std::to_string(port());
}

void RedisServer::restart() {
    if (process_) process_->kill();
    process_.reset();
    start();
}

void RedisServer::restart_empty() {
    if (process_) process_->kill();
    std::filesystem::remove_all(directory_ / "data");
    restart();
}

std::string RedisServer::info(const std::string& section, const std::string& field) const {
    const auto text = command({"INFO", section});
    const auto line = text.find("\n" + field + ":");
    if (line == text.npos) return {};
    const auto begin = line + field.size() + 2;
    return text.substr(begin, text.find('\r', begin) - begin);
}

RespConnection RedisServer::connect() const {
    RespConnection connection{socket()};
    const auto answer = connection.ask({"AUTH", fixture, "any"});
    if (answer != "OK") throw std::runtime_error("redis-server: " + answer);
    return connection;
}

ChildProcess& RedisServer::process() {
    if (!running()) throw std::logic_error("redis-server " + name() + " does not run; restart() it first");
    return *process_;
}

void RedisServer::write_config() const {
    constexpr auto* ordinary =
        "databases 16\n"
        "save \"\"\n"
        "repl-diskless-sync-delay 0\n";  // a replica would wait 5 s for further replicas
    std::ofstream file{directory_ / "redis.conf"};
    file << "bind 127.0.0.1\n"
         << "port " << port() << '\n'
         << "unixsocket " << RedisConfig::quoted(socket()) << '\n'
         << "unixsocketperm 700\n"
         << "dir " << RedisConfig::quoted(directory_ / "data") << '\n'
         << "daemonize no\n"
         << (config_.is_sentinel() ? "" : ordinary) << "user " << fixture << " on nopass ~* &* +@all\n"
         << config_.lines();
    if (!file.flush()) throw std::runtime_error("cannot write redis.conf");
}

namespace {

std::vector<std::string> environment_of(const RedisConfig& config) {
    if (config.clock_file().empty()) return {};
    return {"LD_PRELOAD=" REDLOCK_ODD_CLOCK_LIBRARY, "REDLOCK_ODD_CLOCK=" + config.clock_file().string()};
}

}  // namespace

void RedisServer::start() {
    std::filesystem::create_directory(directory_ / "data");
    // after a crash, a leftover socket would look like a server that refuses
    std::filesystem::remove(socket());
    std::vector<std::string> words{"redis-server", directory_ / "redis.conf"};
    if (config_.is_sentinel()) words.emplace_back("--sentinel");
    process_.emplace(Program{
        .words = std::move(words), .environment = environment_of(config_), .output = directory_ / "log"});
    const auto ready =
        wait_until([this] { return !process_->running() || answers(); }, std::chrono::seconds{30});
    if (ready && process_->running()) return;
    throw std::runtime_error("redis-server does not start:\n" + content(directory_ / "log"));
}

/// Redis opens the port before the socket. If it replies on the socket, it also listens on the port.
bool RedisServer::answers() const {
    try {
        return command({"PING"}) == "PONG";  // "(error) LOADING ..." while it loads its data
    } catch (const std::exception&) {
        return false;
    }
}

}  // namespace redlock::support
