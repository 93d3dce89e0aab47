// The commands that a server has executed for its clients, in its own order. They come from its SLOWLOG,
// which is configured to log every command. (MONITOR of Redis 7.2 and later does not show commands that a
// CLIENT PAUSE had delayed.)
//
//     CommandMonitor monitor{server};
//     (void)lock.acquire();
//     EXPECT_THAT(monitor.commands(), ElementsAre("SET orders:42 ..."));
#pragma once

#include "support/redis_server.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {

class CommandMonitor {
public:
    /// One command. Long words are truncated to about 128 bytes.
    using Words = std::vector<std::string>;

    explicit CommandMonitor(const support::RedisServer& server) : server_(server) {
        send({"CONFIG", "SET", "slowlog-max-len", "100000"});
        send({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
        send({"SLOWLOG", "RESET"});
    }

    /// Returns the commands of all clients since the construction, except those of the fixture, which uses
    /// the unix socket, and those that scripts call. A script calls commands in lower case. Redis reports no
    /// client for them, but Valkey does.
    std::vector<Words> commands() const {
        std::istringstream entries{server_.command({"SLOWLOG", "GET", "100000"})};
        std::vector<Words> result;
        for (std::string id, time, took; std::getline(entries, id) && std::getline(entries, time);) {
            std::getline(entries, took);
            auto [words, client] = read_command(entries);
            const bool in_script = !words.empty() && std::islower(words.front().front()) != 0;
            if (client.starts_with("127.0.0.1:") && !in_script) result.push_back(std::move(words));
        }
        std::ranges::reverse(result);  // the latest comes first
        return result;
    }

private:
    void send(const Words& words) const {
        if (const auto reply = server_.command(words); reply != "OK") throw std::runtime_error(reply);
    }

    /// Reads the words, one on each line, then the address of the client, and its name, which is always
    /// empty. Redis 8 leaves the address empty if a script called the command.
    static std::pair<Words, std::string> read_command(std::istream& entries) {
        Words words;
        std::string line;
        while (std::getline(entries, line) && !line.empty()) words.push_back(line);
        const bool has_client = entries.peek() != '\n';
        if (!has_client) std::getline(entries, line);
        if (!has_client || words.empty()) return {words, {}};
        const auto client = words.back();
        words.pop_back();
        return {words, client};
    }

    const support::RedisServer& server_;
};

}  // namespace redlock::test
