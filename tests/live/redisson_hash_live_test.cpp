// The key of Redisson's locks is a hash, and ours is a string (docs/compatibility.md). Each library refuses
// the key of the other one, and neither changes it. Redisson's scripts call EXISTS and then HEXISTS or HGET,
// which these tests do directly.
#include "live_world.hpp"

#include <string>

namespace redlock::test::redisson_hash_live_test {
namespace {

/// Acquires as Redisson does if there is no key.
void acquire_as_redisson(const RedisServer& server, milliseconds ttl = 1min) {
    ASSERT_EQ(server.command({"EXISTS", the_resource}), "0");
    ASSERT_EQ(server.command({"HINCRBY", the_resource, "client:1", "1"}), "1");
    ASSERT_EQ(server.command({"PEXPIRE", the_resource, std::to_string(ttl.count())}), "1");
}

MATCHER(IsHeldByRedisson, "") {
    return arg.command({"HGET", the_resource, "client:1"}) == "1" && expiry(arg) > 30s;
}

/// Matches if there is a key, and the next command of Redisson's scripts fails.
MATCHER(RefusesRedisson, "") {
    const auto in_hash = [&arg](const std::string& command, const std::string& field) {
        return arg.command({command, the_resource, field});
    };
    return arg.command({"EXISTS", the_resource}) == "1" &&
           in_hash("HEXISTS", "client:1").starts_with("(error) WRONGTYPE") &&
           in_hash("HGET", "mode").starts_with("(error) WRONGTYPE");
}

struct Kind {
    std::string name;
    LockOptions options;
};
void PrintTo(const Kind& kind, std::ostream* out) {
    *out << kind.name;
}

class RedissonsHash : public testing::TestWithParam<Kind> {
protected:
    Lock lock() { return world.lock(GetParam().options); }

    LiveWorld world;
};
INSTANTIATE_TEST_SUITE_P(EachKind, RedissonsHash,
                         testing::Values(Kind{"Plain", {.ttl = 1min}},
                                         Kind{"Fenced", {.ttl = 1min, .fencing = true}},
                                         Kind{"Fair", {.ttl = 1min, .fair = true}},
                                         Kind{"Shared", {.ttl = 1min, .shared = true}},
                                         Kind{"MinHold", {.ttl = 1min, .min_hold = 5s}}),
                         by_name);

TEST_P(RedissonsHash, ExcludesOurLockAndIsNotChanged) {
    for (const auto& server : world) acquire_as_redisson(server);
    EXPECT_THAT(lock().try_acquire(), FailsWith(Errc::held_by_other));
    for (const auto& server : world) EXPECT_THAT(server, IsHeldByRedisson());
}

TEST_P(RedissonsHash, CanBeWaitedFor) {
    for (const auto& server : world) acquire_as_redisson(server, 500ms);
    EXPECT_THAT(lock().acquire_for(1min), Succeeds());
}

TEST_P(RedissonsHash, OnAMinorityIsNotChanged) {
    acquire_as_redisson(world[0]);
    auto ours = lock();
    EXPECT_THAT(ours.acquire(), Succeeds());
    EXPECT_THAT(ours.extend(2min), Succeeds());
    EXPECT_THAT(ours.release(), Succeeds());
    EXPECT_THAT(world[0], IsHeldByRedisson());
}

TEST_P(RedissonsHash, CannotReplaceOurKey) {
    auto ours = lock();
    ASSERT_THAT(ours.acquire(), Succeeds());
    for (const auto& server : world) EXPECT_THAT(server, RefusesRedisson());
    EXPECT_THAT(ours.release(), Succeeds());
}

}  // namespace
}  // namespace redlock::test::redisson_hash_live_test
