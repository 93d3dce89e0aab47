// The scripts of src/scripts.hpp, run by Lua on a Redis in memory.
#include "support/redis_model.hpp"

#include "redis/scripts.hpp"

#include <gtest/gtest.h>

#include <string>

namespace redlock::test {
namespace {

using support::RedisModel;

// D6. What SCRIPT LOAD answers is what EVALSHA is sent.
TEST(Scripts, AreKnownByTheirSha1) {
    for (const auto* const script : wire::scripts)
        EXPECT_EQ(text_of(RedisModel{"run"}.execute({"SCRIPT", "LOAD", std::string{script->text}}, {})),
                  script->sha1);
}

}  // namespace
}  // namespace redlock::test
