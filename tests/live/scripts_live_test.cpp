// The scripts of src/scripts.hpp are known to servers by the names it gives them.
#include "live_world.hpp"

#include "redis/request.hpp"

namespace redlock::test {
namespace {

constexpr auto by_first = [](const auto& info) { return info.param.first; };
class TheScript : public testing::TestWithParam<std::pair<const char*, wire::Script>> {};
INSTANTIATE_TEST_SUITE_P(Scripts, TheScript,
                         testing::Values(std::pair{"CompareAndDelete", wire::compare_and_delete},
                                         std::pair{"CompareAndExpire", wire::compare_and_expire},
                                         std::pair{"DeleteAll", wire::delete_all},
                                         std::pair{"ExpireAll", wire::expire_all},
                                         std::pair{"SetAll", wire::set_all},
                                         std::pair{"SetAndCount", wire::set_and_count},
                                         std::pair{"RaiseCount", wire::raise_count}),
                         by_first);

// D6. What SCRIPT LOAD answers is what EVALSHA is sent.
TEST_P(TheScript, IsCalledWhatTheServerCallsIt) {
    const RedisServer server;
    const auto& script = GetParam().second;
    EXPECT_EQ(server.command({"SCRIPT", "LOAD", std::string{script.text}}), script.sha1);
}

}  // namespace
}  // namespace redlock::test
