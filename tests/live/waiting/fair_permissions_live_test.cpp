// LockOptions::fair where the user of the nodes may not do all of it: it retries as without, and what it
// releases is released.
#include "waiting_world.hpp"

#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test::fair_permissions_live_test {
namespace {

/// The permissions in docs/waiting.md: those of a lock, and those of its queue.
const std::vector<std::string> of_a_lock{"+set",     "+get",  "+del",     "+pttl",
                                         "+pexpire", "+eval", "+evalsha", "~orders:*"};
const std::vector<std::string> of_the_queue{"+exists",
                                            "+time",
                                            "+zadd",
                                            "+zpopmin",
                                            "+zrem",
                                            "+zrank",
                                            "+publish",
                                            "+subscribe",
                                            "~{orders:*}:queue",
                                            "&redlock:wake:*",
                                            "+zrange",
                                            "+pubsub|numsub",
                                            "~{orders:*}:queue:signs"};

RedisConfig without(const std::string& missing) {
    std::string rules = "worker on >s3cret resetkeys resetchannels -@all";
    for (const auto& rule : of_a_lock) rules += " " + rule;
    for (const auto& rule : of_the_queue)
        if (rule != missing) rules += " " + rule;
    return RedisConfig{}.no_default_user().user(rules);
}

constexpr auto* the_signs = "{orders:42}:queue:signs";

struct Servers {
    /// Three, of which so many lack a permission.
    Servers(std::size_t restricted, const std::string& missing)
        : nodes(start(restricted, missing), {.node_timeout = 2s}) {}

    Lock lock(const LockOptions& options) { return Lock{nodes, the_resource, options}; }

    std::deque<RedisServer> servers{};
    RedisNodes nodes;

private:
    std::vector<std::string> start(std::size_t restricted, const std::string& missing) {
        std::vector<std::string> uris;
        for (std::size_t i = 0; i < 3; ++i)
            uris.push_back(
                servers.emplace_back(without(i < restricted ? missing : "")).uri("worker", "s3cret"));
        return uris;
    }
};

LockOptions retrying() {
    auto options = fair();
    options.retry.delay = 100ms;
    return options;
}

/// One holds it, one waits, and gets it when the other releases; three times, for what is learnt of a server.
void expect_hand_overs(Servers& world, const std::string& event, Clock::duration bound) {
    for (int i = 0; i < 3; ++i) {
        auto holder = world.lock(retrying());
        auto lock = world.lock(retrying());
        ASSERT_THAT(holder.acquire_for(50s), Succeeds());
        Result result{Errc::deadline};
        Clock::time_point held;
        std::jthread waiter{[&] {
            result = lock.acquire_for(50s);
            held = now();
        }};
        boot_clock().sleep_until(now() + 150ms, {});
        const auto released = now();
        EXPECT_THAT(holder.release(), Succeeds());
        waiter.join();
        ASSERT_THAT(result, Succeeds());
        expect_delay(event, held - released, bound);
        EXPECT_THAT(lock.release(), Succeeds());
        // On every node, also where a reservation has to expire that its waiter could not make use of.
        for (auto& server : world.servers) {
            EXPECT_TRUE(wait_until([&] { return test::holder(server) == "(nil)"; }));
            for (const auto* const key : {the_queue, the_signs})
                EXPECT_NE(server.command({"PTTL", key}), "-1") << key << " has an expiry";
        }
    }
}

TEST(FairPermissions, TheDocumentedMinimumIsEnough) {
    Servers world{0, ""};
    auto holder = world.lock(fair());
    ASSERT_THAT(holder.acquire(), Succeeds());
    for (int i = 0; i < 3; ++i) {
        auto lock = world.lock(fair());
        std::jthread waiter{[&] { EXPECT_THAT(lock.acquire_for(50s), Succeeds()); }};
        ASSERT_TRUE(queued(world.servers[0], 1));
        const auto released = now();
        EXPECT_THAT(holder.release(), Succeeds());
        waiter.join();
        expect_delay("least permissions", now() - released, 0ms);
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_THAT(holder.acquire_for(50s), Succeeds());
    }
    std::istringstream log{world.servers[0].command({"ACL", "LOG"})};
    for (std::string line, last; std::getline(log, line); last = std::exchange(line, {}))
        EXPECT_TRUE(last != "object" || line == "ping") << line;  // the handshake does without
}

// Without ZRANGE, a script cannot tell a queue from the sorted set of an application.
TEST(FairPermissions, WithoutZrangeTheSortedSetOfAnApplicationStaysAsItIs) {
    Servers world{3, "+zrange"};
    for (auto& server : world.servers)
        ASSERT_EQ(server.command({"ZADD", the_queue, "1", "of an application", "2", "another"}), "2");
    auto holder = world.lock(retrying());
    ASSERT_THAT(holder.acquire(), Succeeds());
    const auto result = world.lock(retrying()).acquire_for(1s);
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    ASSERT_THAT(result.queue_refusals(), SizeIs(3));
    EXPECT_EQ(result.queue_refusals()[0].cause, Errc::permission_denied);
    EXPECT_THAT(holder.release(), Succeeds());
    for (auto& server : world.servers) {
        EXPECT_EQ(server.command({"ZRANGE", the_queue, "0", "-1"}), "of an application\nanother");
        EXPECT_EQ(server.command({"PTTL", the_queue}), "-1");
    }
}

std::string name_of_rule(const testing::TestParamInfo<std::string>& info) {
    auto name = info.param;
    std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
    return name;
}

class EachRule : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(FairPermissions, EachRule, testing::ValuesIn(of_the_queue), name_of_rule);

TEST_P(EachRule, IsNotNeededToRetry) {
    Servers world{3, GetParam()};
    expect_hand_overs(world, "no " + GetParam(), 2 * 100ms + 4 * poll_interval);
}

// On one node alone: the next one is the home.
TEST_P(EachRule, IsNotNeededOnTheFirstNode) {
    Servers world{1, GetParam()};
    expect_hand_overs(world, "no " + GetParam() + " on the first node", 2 * 100ms + 4 * poll_interval);
}

}  // namespace
}  // namespace redlock::test::fair_permissions_live_test
