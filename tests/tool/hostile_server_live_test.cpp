// A server, and a user, who put commands for the terminal into every text that `redlock` prints.
#include "fake_redis_server.hpp"
#include "invocation.hpp"

#include <deque>
#include <regex>
#include <string>
#include <vector>

namespace redlock::test::hostile_server_live_test {
namespace {

/// Escape sequences in the three forms that terminals know, an end of line, and bytes that are no UTF-8.
const std::string evil =
    "\x1b]0;title\x07\x1b[31m\xC2\x9B"
    "31m\x9b"
    "31m\x7f\xE2\x80\xAE\xff\r";
const std::string evil_lines = evil + "\nEVIL" + evil + "\nEVIL";

std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}
std::string list(const std::string& one, const std::string& other) {
    return "*2\r\n" + bulk(one) + bulk(other);
}
std::string error(const std::string& word) {
    return "-" + word +
           " \x1b[31m\xC2\x9B"
           "31m\x9b"
           "31m\xff\r\n";
}

std::string info() {
    std::string text =
        "uptime_in_seconds:18446744073709551615\r\nused_memory:18446744073709551615\r\nmaxmemory:1\r\n";
    for (const auto* const field : {"redis_version", "valkey_version", "redis_mode", "role", "run_id",
                                    "master_replid", "maxmemory_policy"})
        text += std::string{field} + ":1" + evil + "\r\n";
    return text + "connected_slaves:7\r\naof_enabled:1\r\n";
}

/// The answer to the script behind `status`: the type, the time left, three counts, and the holder.
std::string status(const std::string& type, const std::string& owner, const std::string& holder) {
    return bulk(type + " 60000 1 0 1 " + std::to_string(owner.size()) + "\n" + owner +
                (holder.empty() ? "" : owner + " " + holder));
}

/// Refuses every lock, and says of the holder what the test tells it.
FakeRedisServer::Behavior refusing(std::string answer_to_status) {
    return [answer_to_status](Session& session) {
        for (;;) {
            const auto words = session.receive_command();
            const auto& name = words.front();
            if (name == "PING")
                session.send("+PONG\r\n");
            else if (name == "SET")
                session.send("$-1\r\n");
            else if (name == "INFO")
                session.send(bulk(info()));
            else if (name == "CONFIG")
                session.send(list(words.at(2), evil_lines));
            else if (name == "TIME")
                session.send(list("9223372036854775807", "0"));
            else if (name == "GET")
                session.send(bulk(evil_lines));
            else if (name.starts_with("EVAL") && words.at(2) == "5")
                session.send(answer_to_status);
            else if (name.starts_with("EVAL"))
                session.send(":0\r\n");
            else
                session.send(error("ERR"));
        }
    };
}

FakeRedisServer::Behavior failing(std::string answer) {
    return [answer](Session& session) {
        for (;;) {
            const auto words = session.receive_command();
            session.send(words.front() == "PING" ? "+PONG\r\n" : answer);
        }
    };
}

const std::string owner(40, 'a');

std::vector<std::vector<std::string>> all_commands(const std::string& resource) {
    return {{"status", resource},
            {"who", resource},
            {"acquire", "-nv", resource},
            {"acquire", "-v", "-w", "0.1", "--fair", resource},
            {"extend", "-v", "--owner", owner, resource},
            {"release", "-v", "--owner", owner, resource},
            {"break", "-v", "--owner", owner, resource},
            {"doctor"},
            {"doctor", "--probe", resource, "--fair", "--fencing", "--mark", "--quarantine", "30s"},
            {"bench", "--seconds", "0.01"}};
}

/// Nothing but text and ends of lines, and no line that somebody else has begun.
void expect_harmless(const std::string& text) {
    const nlohmann::json as_json = text;
    EXPECT_NO_THROW((void)as_json.dump()) << "no UTF-8: " << testing::PrintToString(text);
    EXPECT_FALSE(std::regex_search(text, std::regex{"[\x01-\x09\x0b-\x1f\x7f]"}))
        << testing::PrintToString(text);
    EXPECT_FALSE(std::regex_search(text, std::regex{"\xC2[\x80-\x9f]"})) << testing::PrintToString(text);
    EXPECT_EQ(text.find("\xE2\x80\xAE"), text.npos) << testing::PrintToString(text);
    EXPECT_EQ(("\n" + text).find("\nEVIL"), text.npos) << testing::PrintToString(text);
}

class HostileServerText : public testing::TestWithParam<FakeRedisServer::Behavior> {
protected:
    HostileServerText() {
        while (servers.size() < 3) servers.emplace_back(GetParam());
    }
    std::string uri_list() const {
        return support::comma_list(servers, [](const auto& it) { return it.uri(); });
    }
    std::deque<FakeRedisServer> servers{};
};

TEST_P(HostileServerText, DoesNotReachATerminal) {
    for (const std::string resource : {"job", evil_lines.c_str()})
        for (const auto& words : all_commands(resource)) {
            SCOPED_TRACE(testing::PrintToString(words));
            Invocation tool{uri_list(), words, "500ms"};
            (void)tool.wait();
            EXPECT_NE(tool.output(), "");
            expect_harmless(tool.output());
        }
}

TEST_P(HostileServerText, DoesNotReachATerminalFromRun) {
    for (const std::string resource : {"job", evil_lines.c_str()})
        for (const std::string option : {"-nv", "-w0.1"}) {
            const auto words =
                std::vector<std::string>{"run", "--node-timeout", "500ms", option, resource, "true"};
            Tool tool{words, {"REDLOCK_NODES=" + uri_list()}};
            const auto outcome = tool.wait();
            EXPECT_NE(outcome.err, "");
            expect_harmless(outcome.out + outcome.err);
        }
}

TEST_P(HostileServerText, IsCompleteAndEscapedInJson) {
    for (auto words : all_commands(evil_lines)) {
        SCOPED_TRACE(testing::PrintToString(words));
        std::erase(words, "-v");
        words.emplace_back("--json");
        Invocation tool{uri_list(), words, "500ms"};
        const auto outcome = tool.wait();
        expect_harmless(outcome.out + outcome.err);
        EXPECT_TRUE(nlohmann::json::accept(outcome.out)) << outcome.out;
    }
}

INSTANTIATE_TEST_SUITE_P(EachReply, HostileServerText,
                         testing::Values(refusing(status("string", evil_lines, evil_lines)),
                                         refusing(status("string", owner, evil_lines)),
                                         refusing(status("li" + evil + "st", "", "")), failing(error("ERR")),
                                         failing(error("NOPERM")), failing(error("WRONGTYPE"))));

TEST(HostileUserInput, DoesNotReachATerminal) {
    LiveWorld world{1};
    for (const auto& words :
         std::vector<std::vector<std::string>>{{evil_lines},
                                               {"run", "--" + evil_lines, "job", "true"},
                                               {"run", "--ttl", evil_lines, "job", "true"},
                                               {"run", "--node", "redis://" + evil_lines, "job", "true"},
                                               {"run", "--nodes-file", evil_lines, "job", "true"},
                                               {"run", "-v", evil_lines, evil_lines},
                                               {"run", "-v", "job", evil_lines}}) {
        SCOPED_TRACE(testing::PrintToString(words));
        Tool tool{words, {"REDLOCK_NODES=" + world.uri_list()}};
        const auto outcome = tool.wait();
        EXPECT_NE(outcome.status, 0);
        EXPECT_NE(outcome.err, "");
        expect_harmless(outcome.err);
    }
}

TEST(HostileUserInput, IsPrintedAsReadableBytes) {
    LiveWorld world{1};
    ASSERT_EQ(world[0].command({"HSET", "job\x1b", "field", "1"}), "1");
    Tool command{{"run", "-n", "job\x1b", "true"}, {"REDLOCK_NODES=" + world.uri_list()}};
    EXPECT_THAT(command.wait().err, HasSubstr("redlock: job\\x1b: "));
}

}  // namespace
}  // namespace redlock::test::hostile_server_live_test
