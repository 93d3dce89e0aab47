// What a server has carried out and for whom, in its own order: its SLOWLOG, told to find everything slow.
// (The MONITOR of Redis 7.2 and later does not show what a CLIENT PAUSE had put off.)
//
//     Monitor monitor{server};
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

/// One command; of long words the beginning.
struct Heard {
    bool says(std::string_view word) const { return std::ranges::find(words, word) != words.end(); }

    std::string client{};  ///< its address
    std::vector<std::string> words{};
};

class Monitor {
public:
    explicit Monitor(const support::RedisServer& server) : server_(server) {
        order({"CONFIG", "SET", "slowlog-max-len", "100000"});
        order({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
        turn_page();
    }

    /// What clients had done since it was made, but for the fixture, which comes by the unix socket.
    std::vector<Heard> commands() const {
        std::istringstream entries{server_.command({"SLOWLOG", "GET", "100000"})};
        std::vector<Heard> result;
        for (std::string id, time, took; std::getline(entries, id) && std::getline(entries, time);) {
            std::getline(entries, took);
            auto heard = read_command(entries);
            if (heard.client.starts_with("127.0.0.1:")) result.push_back(std::move(heard));
        }
        std::ranges::reverse(result);  // the latest comes first
        return result;
    }

    /// Those of them that say `word`.
    std::vector<Heard> commands(std::string_view word) const {
        auto result = commands();
        std::erase_if(result, [&](const Heard& heard) { return !heard.says(word); });
        return result;
    }

    /// Forgets what it has heard.
    void turn_page() { order({"SLOWLOG", "RESET"}); }

private:
    void order(const std::vector<std::string>& words) const {
        if (const auto reply = server_.command(words); reply != "OK") throw std::runtime_error(reply);
    }

    /// The words, one a line; the client's address, which Redis 8 leaves empty where a script did it; its
    /// name, which is always empty.
    static Heard read_command(std::istream& entries) {
        Heard heard;
        std::string line;
        while (std::getline(entries, line) && !line.empty()) heard.words.push_back(line);
        const bool has_client = entries.peek() != '\n';
        if (!has_client) std::getline(entries, line);
        if (!has_client || heard.words.empty()) return heard;
        heard.client = heard.words.back();
        heard.words.pop_back();
        return heard;
    }

    const support::RedisServer& server_;
};

}  // namespace redlock::test
