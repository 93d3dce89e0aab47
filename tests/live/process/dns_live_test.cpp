// Rule D5: names are looked up, all of their addresses are tried, and no look-up blocks beyond the deadline.
#include "fake_dns.hpp"
#include "process_state.hpp"
#include "silent_address.hpp"

#include "live/forked_child.hpp"
#include "live/live_world.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test {
namespace {

using testing::Le;

/// A limit far above what it should take, so that it holds on a busy machine.
constexpr auto soon = 5s;

/// The threads that there are before a look-up: with those that a sanitizer starts once there are threads.
std::size_t tasks_before() {
    std::thread{[] {}}.join();
    return tasks();
}

std::string at(const std::string& name, const RedisServer& server) {
    return name + ":" + std::to_string(server.port());
}

class Name : public testing::Test {
protected:
    RedisServer server_{};
};

TEST_F(Name, WithADeadAddressBeforeTheLivingOneWorks) {
    set_addresses("two.test", {"127.0.0.2", "127.0.0.1"});
    RedisNodes nodes{at("two.test", server_)};
    Lock lock{nodes, "resource"};
    const auto result = lock.acquire_for(10s);
    EXPECT_TRUE(result) << result.message();
}

// As localhost often has it. A machine without IPv6 refuses the first in another way.
TEST_F(Name, WithAnIpv6AddressBeforeTheIpv4OneThatTheServerListensOnWorks) {
    set_addresses("both.test", {"::1", "127.0.0.1"});
    RedisNodes nodes{at("both.test", server_)};
    Lock lock{nodes, "resource"};
    const auto result = lock.acquire_for(10s);
    EXPECT_TRUE(result) << result.message();
}

// Where IPv6 is routed to nowhere, for example: one silent address must not hide the others for ever.
TEST_F(Name, WithASilentAddressBeforeTheLivingOneWorks) {
    const SilentAddress silent{"127.0.0.3", server_.port()};
    set_addresses("silent-first.test", {"127.0.0.3", "127.0.0.1"});
    RedisNodes nodes{{at("silent-first.test", server_)}, {.node_timeout = 200ms}};
    Lock lock{nodes, "resource"};
    const auto result = lock.acquire_for(10s);
    EXPECT_TRUE(result) << result.message();
}

TEST_F(Name, ThatMovesAwayFromADeadAddressIsLookedUpAgain) {
    set_addresses("moving.test", {"127.0.0.2"});
    RedisNodes nodes{at("moving.test", server_)};
    Lock lock{nodes, "resource"};
    EXPECT_FALSE(lock.try_acquire());
    set_addresses("moving.test", {"127.0.0.1"});
    const auto result = lock.acquire_for(10s);
    EXPECT_TRUE(result) << result.message();
}

// A machine that was replaced answers nothing at its old address, not even a refusal.
TEST_F(Name, ThatMovesAwayFromASilentAddressIsLookedUpAgain) {
    const SilentAddress silent{"127.0.0.3", server_.port()};
    set_addresses("replaced.test", {"127.0.0.3"});
    RedisNodes nodes{{at("replaced.test", server_)}, {.node_timeout = 200ms}};
    Lock lock{nodes, "resource"};
    EXPECT_FALSE(lock.try_acquire());
    set_addresses("replaced.test", {"127.0.0.1"});
    const auto result = lock.acquire_for(10s);
    EXPECT_TRUE(result) << result.message();
}

/// One name among two servers that are fine.
class NameAmongThree : public InEachRound {
protected:
    std::vector<std::string> with(const std::string& name) const {
        return {at(name, servers_[2]), servers_[0].uri(), servers_[1].uri()};
    }
    NodesOptions options() const { return {.node_timeout = 1s, .round = GetParam()}; }

    std::deque<RedisServer> servers_ = std::deque<RedisServer>(3);
};

INSTANTIATE_TEST_SUITE_P(Asking, NameAmongThree, each_round(), by_round);

// A3
TEST_P(NameAmongThree, ThatIsUnknownDoesNotHinderTheOthers) {
    set_addresses("unknown.test", {});
    RedisNodes nodes{with("unknown.test"), options()};
    for (int time = 0; time < 10; ++time) {
        Lock lock{nodes, "resource"};
        const auto start = boot_clock().now();
        const auto result = lock.try_acquire();
        EXPECT_TRUE(result) << result.message();
        EXPECT_THAT(boot_clock().now() - start, Le(soon));
        EXPECT_EQ(result.nodes()[0].vote, Vote::unknown);
        EXPECT_FALSE(result.nodes()[0].sent);
        EXPECT_TRUE(lock.release());
    }
}

// A3
TEST_P(NameAmongThree, WhoseLookUpHangsDoesNotHinderTheOthers) {
    const auto before = tasks_before();
    const auto looked_up = lookups_of("slow.test");
    HangingName hanging{"slow.test", "127.0.0.1"};
    RedisNodes nodes{with("slow.test"), options()};
    Lock lock{nodes, "resource"};
    for (int time = 0; time < 10; ++time) {
        const auto start = boot_clock().now();
        const auto result = lock.try_acquire();
        EXPECT_TRUE(result) << result.message();
        EXPECT_TRUE(lock.release());
        EXPECT_THAT(boot_clock().now() - start, Le(soon));
    }
    EXPECT_EQ(lookups_of("slow.test"), looked_up + 1) << "one thread, however many rounds wait for it";
    hanging.resolve();
    EXPECT_TRUE(wait_until([&] {  // then it votes like the others
        const auto result = lock.try_acquire();
        return lock.release() && result.nodes()[0].vote == Vote::granted;
    }));
    EXPECT_TRUE(wait_until([&] { return tasks() <= before; })) << "the thread ends with the look-up";
}

TEST(UnknownNames, AreReportedAsConnectionsThatFailed) {
    set_addresses("unknown.test", {});
    RedisNodes nodes{"unknown.test:1", "unknown.test:2"};
    Lock lock{nodes, "resource"};
    const auto result = lock.try_acquire();
    EXPECT_EQ(result.error(), Errc::no_quorum);
    EXPECT_EQ(result.nodes()[0].cause, Errc::connection_failed) << result.message();
    EXPECT_FALSE(result.nodes()[0].detail.empty()) << "the resolver's own words";
}

TEST(HangingNames, KeepTheDeadlineAndAreReportedAsTimedOut) {
    HangingName hanging{"slow.test", "127.0.0.1"};
    RedisNodes nodes{{"slow.test:1", "slow.test:2", "slow.test:3"}, {.node_timeout = 100ms}};
    Lock lock{nodes, "resource"};
    const auto start = boot_clock().now();
    const auto single = lock.try_acquire();
    EXPECT_EQ(single.error(), Errc::no_quorum);
    EXPECT_EQ(single.nodes()[0].cause, Errc::timed_out) << single.message();
    EXPECT_FALSE(lock.acquire_for(300ms));
    EXPECT_THAT(boot_clock().now() - start, Le(soon));
}

// A service that makes its nodes anew for every job must not collect threads while its DNS hangs.
TEST(HangingNames, CostOneThreadEachHoweverManyNodesAreMade) {
    const auto before = tasks_before();
    const auto looked_up = lookups_of("slow.test");
    {
        HangingName hanging{"slow.test", "127.0.0.1"};
        for (int time = 0; time < 50; ++time) {
            RedisNodes nodes{{"slow.test:1"}, {.node_timeout = 1ms}};
            Lock lock{nodes, "resource"};
            EXPECT_FALSE(lock.try_acquire());
        }
        EXPECT_THAT(tasks(), Le(before + 1));
        EXPECT_EQ(lookups_of("slow.test"), looked_up + 1);
    }
    EXPECT_TRUE(wait_until([&] { return tasks() <= before; })) << "the thread ends with the look-up";
}

// D10. The thread that looks a name up for the parent is not there in a child.
TEST(HangingNames, AreLookedUpAnewAfterFork) {
    RedisServer server;
    HangingName hanging{"slow.test", "127.0.0.1"};
    RedisNodes nodes{{at("slow.test", server)}, {.node_timeout = 1ms}};
    EXPECT_FALSE((Lock{nodes, "resource"}.try_acquire()));
    ForkedChild child{[&](auto report) {
        hanging.resolve();
        RedisNodes own{at("slow.test", server)};
        const auto result = Lock{own, "resource"}.acquire_for(10s);
        report(result ? "acquired" : result.message());
    }};
    EXPECT_EQ(child.receive(), "acquired");
}

TEST(HangingNames, DoNotHoldUpTheDestructionOfTheNodes) {
    const auto before = tasks_before();
    {
        HangingName hanging{"slow.test", "127.0.0.1"};
        Clock::time_point start{};
        {
            RedisNodes nodes{"slow.test:1"};
            Lock lock{nodes, "resource"};
            EXPECT_FALSE(lock.try_acquire());
            start = boot_clock().now();
        }
        EXPECT_THAT(boot_clock().now() - start, Le(soon));
    }
    EXPECT_TRUE(wait_until([&] { return tasks() <= before; })) << "the thread ends with the look-up";
}

}  // namespace
}  // namespace redlock::test
