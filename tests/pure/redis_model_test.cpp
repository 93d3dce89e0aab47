// The model of Redis alone. redis_model_live_test.cpp compares it with a real server.
#include "support/redis_model.hpp"
#include "support/command_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "wire/scripts.hpp"

namespace redlock::test {
namespace {

using namespace std::chrono_literals;
using support::RedisModel;
using testing::ElementsAre;
using testing::StartsWith;

struct RedisModelTest : testing::Test {
    std::string ask(const std::vector<std::string>& words) { return text_of(redis.execute(words, now)); }

    RedisModel redis{"run-1"};
    RedisModel::Time now = 1'760'000'000s;
};

// A key still exists in the millisecond in which it expires.
TEST_F(RedisModelTest, ExpiresAKeyAfterItsLastMillisecond) {
    ask({"SET", "key", "me", "PX", "1000"});
    now += 1000ms + 999us;
    EXPECT_EQ(ask({"PTTL", "key"}), "0");
    EXPECT_EQ(ask({"EXISTS", "key"}), "1");
    now += 1us;
    EXPECT_EQ(ask({"EXISTS", "key"}), "0");
    EXPECT_EQ(ask({"SET", "key", "you", "NX", "PX", "1000"}), "OK");
}

// The keys are a value: a snapshot is a copy, and an eviction is an erase().
TEST_F(RedisModelTest, RestartsWithTheGivenData) {
    ask({"SET", "key", "me"});
    const auto snapshot = redis.keys();
    ask({"SET", "key", "you"});
    redis.restart("run-2", snapshot);
    EXPECT_EQ(ask({"GET", "key"}), "me");
    EXPECT_THAT(ask({"INFO", "server"}), testing::HasSubstr("run-2\r\n"));
    redis.keys().erase("key");
    EXPECT_EQ(ask({"GET", "key"}), "(nil)");
}

TEST_F(RedisModelTest, KnowsAScriptUntilItRestarts) {
    const auto& script = detail::scripts::compare_and_delete;
    const std::vector<std::string> call{"EVALSHA", std::string{script.sha1}, "1", "key", "me"};
    EXPECT_THAT(ask(call), StartsWith("(error) NOSCRIPT"));
    ask({"EVAL", std::string{script.text}, "1", "key", "me"});
    EXPECT_EQ(ask(call), "0");
    RedisModel another{"run-2"};
    EXPECT_TRUE(another.execute(call, now).is_error()) << "each server for itself";
    redis.restart("run-2", redis.keys());
    EXPECT_THAT(ask(call), StartsWith("(error) NOSCRIPT"));
}

TEST_F(RedisModelTest, RunsScriptsInAnyThread) {
    const auto count = [&] {
        return ask({"EVAL", "return redis.call('rpush',KEYS[1],ARGV[1])", "1", "list", "a"});
    };
    EXPECT_EQ(count(), "1");
    std::thread{[&] { EXPECT_EQ(count(), "2"); }}.join();
    EXPECT_EQ(count(), "3");
}

// A simulated server reads bytes in any pieces, and writes bytes.
TEST_F(RedisModelTest, SpeaksResp) {
    support::CommandReader reader{std::numeric_limits<std::size_t>::max()};
    std::vector<std::string> replies;
    const auto bytes = support::to_resp({"SET", "key", std::string(100, 'a')}) +
                       support::to_resp({"GET", "key"}) + support::to_resp({"GET", "nothing"}) +
                       support::to_resp({"TIME"}) + support::to_resp({"GET"});
    for (const char byte : bytes)
        reader.take({&byte, 1},
                    [&](const auto& words) { replies.push_back(to_resp(redis.execute(words, now))); });
    EXPECT_THAT(replies, ElementsAre("+OK\r\n", "$100\r\n" + std::string(100, 'a') + "\r\n", "$-1\r\n",
                                     "*2\r\n$10\r\n1760000000\r\n$1\r\n0\r\n",
                                     "-ERR wrong number of arguments for 'get' command\r\n"));
    reader.take("GET key\r\n", [](const auto&) { ADD_FAILURE(); });
    EXPECT_TRUE(reader.blind());
}

}  // namespace
}  // namespace redlock::test
