// What servers in memory and proxies take for a command.
#include "support/command_reader.hpp"

#include "support/redis_reply.hpp"

#include <gtest/gtest.h>

namespace redlock::test::command_reader_test {
namespace {

TEST(CommandReader, TakesNothingBehindBytesThatAreNotResp) {
    support::CommandReader reader;
    reader.take("GET key\r\n" + support::to_resp({"GET", "key"}), [](const auto&) { ADD_FAILURE(); });
    EXPECT_TRUE(reader.blind());
}

}  // namespace
}  // namespace redlock::test::command_reader_test
