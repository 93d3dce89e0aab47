// What a server was told and by whom, in its own order: MONITOR.
//
//     Monitor monitor{server};
//     (void)lock.acquire();
//     EXPECT_THAT(monitor.commands(), ElementsAre("SET orders:42 ..."));
#pragma once

#include "support/redis_server.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace redlock::test {

/// One command, as MONITOR shows it: `1700000000.123456 [0 127.0.0.1:40123] "SET" "orders:42" ...`.
struct Heard {
    explicit Heard(std::string_view line) {
        const auto open = line.find('[');
        const auto close = line.find("] \"", open);
        const auto space = line.find(' ', open);
        database = line.substr(open + 1, space - open - 1);
        client = line.substr(space + 1, close - space - 1);
        for (auto rest = line.substr(close + 2); rest.starts_with('"');) words.push_back(cut_word(rest));
    }

    bool says(std::string_view word) const {
        for (const auto& each : words)
            if (each == word) return true;
        return false;
    }

    std::string database{};
    std::string client{};  ///< its address; "lua" where a script did it
    std::vector<std::string> words{};

private:
    /// Takes one quoted word off the front, and the space behind it.
    static std::string cut_word(std::string_view& rest) {
        std::string word;
        std::size_t at = 1;
        for (; at < rest.size() && rest[at] != '"'; ++at)
            if (rest[at] != '\\')
                word += rest[at];
            else if (rest[++at] != 'x')
                word += unescaped(rest[at]);
            else {
                word += static_cast<char>(std::stoi(std::string{rest.substr(at + 1, 2)}, nullptr, 16));
                at += 2;
            }
        rest.remove_prefix(std::min(rest.size(), at + 2));
        return word;
    }

    static char unescaped(char letter) {
        constexpr std::string_view letters = "nrtab";
        const auto at = letters.find(letter);
        return at == letters.npos ? letter : std::string_view{"\n\r\t\a\b"}[at];
    }
};

class Monitor {
public:
    explicit Monitor(const support::RedisServer& server) : server_(server), connection_(server.connect()) {
        if (connection_.ask({"MONITOR"}) != "OK") throw std::runtime_error("no MONITOR");
    }

    /// What clients have sent since it was made, as far as the server has executed it: neither the fixture,
    /// which comes by the unix socket, nor what scripts did.
    const std::vector<Heard>& commands() {
        const auto mark = "mark " + std::to_string(++marks_);
        if (server_.command({"ECHO", mark}) != mark) throw std::runtime_error("no ECHO");
        for (Heard heard{connection_.read()}; !heard.says(mark); heard = Heard{connection_.read()})
            if (heard.client != "lua" && !heard.client.starts_with("unix:")) heard_.push_back(heard);
        return heard_;
    }

    /// Those of them that say `word`.
    std::vector<Heard> commands(std::string_view word) {
        std::vector<Heard> result;
        for (const auto& heard : commands())
            if (heard.says(word)) result.push_back(heard);
        return result;
    }

    /// Forgets what it has heard.
    void turn_page() {
        (void)commands();
        heard_.clear();
    }

private:
    const support::RedisServer& server_;
    support::RespConnection connection_;
    std::vector<Heard> heard_{};
    int marks_ = 0;
};

}  // namespace redlock::test
