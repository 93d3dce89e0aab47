// What tests in memory need of the model of Redis, and would not notice if it were wrong.
// redis_model_live_test.cpp compares the model with a real server.
#include "support/redis_model.hpp"
#include "support/command_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redlock::test::redis_model_test {
namespace {

using namespace std::chrono_literals;
using support::RedisModel;

// A key still exists in the millisecond in which it expires.
TEST(RedisModel, ExpiresAKeyAfterItsLastMillisecond) {
    RedisModel redis{"run-1"};
    RedisModel::Time now = 1'760'000'000s;
    const auto ask = [&](const std::vector<std::string>& words) {
        return text_of(redis.execute(words, now));
    };
    ask({"SET", "key", "me", "PX", "1000"});
    now += 1000ms + 999us;
    EXPECT_EQ(ask({"PTTL", "key"}), "0");
    EXPECT_EQ(ask({"EXISTS", "key"}), "1");
    now += 1us;
    EXPECT_EQ(ask({"EXISTS", "key"}), "0");
    EXPECT_EQ(ask({"SET", "key", "you", "NX", "PX", "1000"}), "OK");
}

TEST(CommandReader, TakesNothingBehindBytesThatAreNotResp) {
    support::CommandReader reader;
    reader.take("GET key\r\n" + support::to_resp({"GET", "key"}), [](const auto&) { ADD_FAILURE(); });
    EXPECT_TRUE(reader.blind());
}

}  // namespace
}  // namespace redlock::test::redis_model_test
