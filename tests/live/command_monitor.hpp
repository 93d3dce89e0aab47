// What a server has carried out and for which client, in its own order: its SLOWLOG, configured to log every
// command. (MONITOR of Redis 7.2 and later does not show what a CLIENT PAUSE had delayed.)
//
//     CommandMonitor monitor{server};
//     (void)lock.acquire();
//     EXPECT_THAT(monitor.commands(), ElementsAre("SET orders:42 ..."));
#pragma once

#include "support/redis_server.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test {

/// One command; of long words the first 128 bytes or so.
struct ServedCommand {
    bool contains(std::string_view word) const { return std::ranges::find(words, word) != words.end(); }

    std::string client{};  ///< its address
    std::vector<std::string> words{};
};

class CommandMonitor {
public:
    explicit CommandMonitor(const support::RedisServer& server) : server_(server) {
        send({"CONFIG", "SET", "slowlog-max-len", "100000"});
        send({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
        clear();
    }

    /// The commands of all clients since it was made, but for the fixture, which uses the unix socket.
    std::vector<ServedCommand> commands() const {
        std::istringstream entries{server_.command({"SLOWLOG", "GET", "100000"})};
        std::vector<ServedCommand> result;
        for (std::string id, time, took; std::getline(entries, id) && std::getline(entries, time);) {
            std::getline(entries, took);
            auto command = read_command(entries);
            if (command.client.starts_with("127.0.0.1:")) result.push_back(std::move(command));
        }
        std::ranges::reverse(result);  // the latest comes first
        return result;
    }

    /// Those of them that contain `word`.
    std::vector<ServedCommand> commands(std::string_view word) const {
        auto result = commands();
        std::erase_if(result, [&](const ServedCommand& command) { return !command.contains(word); });
        return result;
    }

    /// Forgets what it has seen.
    void clear() { send({"SLOWLOG", "RESET"}); }

private:
    void send(const std::vector<std::string>& words) const {
        if (const auto reply = server_.command(words); reply != "OK") throw std::runtime_error(reply);
    }

    /// The words, one a line; the client's address, which Redis 8 leaves empty where a script did it; its
    /// name, which is always empty.
    static ServedCommand read_command(std::istream& entries) {
        ServedCommand command;
        std::string line;
        while (std::getline(entries, line) && !line.empty()) command.words.push_back(line);
        const bool has_client = entries.peek() != '\n';
        if (!has_client) std::getline(entries, line);
        if (!has_client || command.words.empty()) return command;
        command.client = command.words.back();
        command.words.pop_back();
        return command;
    }

    const support::RedisServer& server_;
};

}  // namespace redlock::test
