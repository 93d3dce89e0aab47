// Nodes that Sentinels name: real ones, three of them, over a master and its replica.
#include "guarantee_world.hpp"

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace redlock::test {
namespace {

using testing::HasSubstr;

/// One node, as far as a client can tell.
class SentinelWorld {
public:
    SentinelWorld() {
        EXPECT_TRUE(wait_until([&] { return servers[1].info("replication", "master_link_status") == "up"; }));
        for (auto& sentinel : sentinels) sentinel.emplace(RedisConfig{}.sentinel_of(servers[0].port()));
        const auto complete = [](const auto& it) {
            const auto known = it->info("sentinel", "master0");
            return known.find("slaves=1,sentinels=3") != known.npos;
        };
        EXPECT_TRUE(wait_until([&] { return std::ranges::all_of(sentinels, complete); }, 30s));
    }

    std::string uri() const {
        std::string hosts;
        for (const auto& it : sentinels) hosts += (hosts.empty() ? "" : ",") + it->name();
        return "redis+sentinel://" + hosts + "/mymaster";
    }

    /// Whether two of three name it.
    bool named(const RedisServer& server) const {
        return std::ranges::count_if(sentinels, [&](const auto& it) {
                   const auto answer = it->command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"});
                   return answer.find(std::to_string(server.port())) != answer.npos;
               }) >= 2;
    }

    /// Has that one promoted; a Sentinel may give up a failover that it has begun.
    void fail_over_to(const RedisServer& next) const {
        EXPECT_TRUE(wait_until(
            [&] {
                if (named(next)) return true;
                sentinels[0]->command({"SENTINEL", "FAILOVER", "mymaster"});
                return wait_until([&] { return named(next); }, 15s);
            },
            90s));
    }

    /// Sentinels tell the former master that it is a replica now, too, but only after 8 s or more.
    static void follow(const RedisServer& former, const RedisServer& master) {
        boot_clock().sleep_until(boot_clock().now() + 2s, {});  // in which it goes on as a master
        EXPECT_THAT(former.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())}),
                    testing::StartsWith("OK"));
    }

    /// The master is frozen, and the replica promoted without the lock that it has granted last.
    void lose_master() {
        servers[0].freeze();
        ASSERT_TRUE(wait_until([&] { return named(servers[1]); }, 60s));
        take_over();
        servers[1].command({"DEL", the_resource});
    }

    /// As if there were another replica: without any the new master takes no writes.
    void take_over() {
        EXPECT_TRUE(wait_until([&] { return servers[1].info("replication", "role") == "master"; }));
        EXPECT_EQ(servers[1].command({"CONFIG", "SET", "min-replicas-to-write", "0"}), "OK");
    }

    RedisConfig bounded{RedisConfig{}.line("min-replicas-to-write 1").line("min-replicas-max-lag 1")};
    std::array<RedisServer, 2> servers{RedisServer{bounded}, RedisServer{replica()}};
    std::array<std::optional<RedisServer>, 3> sentinels{};

private:
    RedisConfig replica() { return RedisConfig{bounded}.replica_of(servers[0].port()); }
};

/// A client with nodes of its own.
struct Client {
    explicit Client(const SentinelWorld& world, milliseconds q = quarantine)
        : nodes{{world.uri()}, {.node_timeout = 2s, .quarantine = q}} {}
    RedisNodes nodes;
    Lock lock{nodes, the_resource, no_retry(quarantine)};
};

TEST(Sentinels, NameTheMasterAndTheNextOne) {
    SentinelWorld world;
    whole_since(world.servers[0], 1min);
    Client client{world};
    ASSERT_THAT(client.lock.acquire(), Succeeds());
    EXPECT_EQ(client.nodes.name(0), "mymaster@" + world.sentinels[0]->name());
    EXPECT_EQ(holder(world.servers[0]), client.lock.owner());
    ASSERT_THAT(client.lock.release(), Succeeds());

    world.fail_over_to(world.servers[1]);
    world.take_over();
    EXPECT_TRUE(wait_until([&] {
        const auto result = client.lock.acquire();
        EXPECT_FALSE(result);
        return result.nodes()[0].cause == Errc::quarantined;
    }));
    whole_since(world.servers[1], 1min);
    EXPECT_TRUE(wait_until([&] { return bool{client.lock.acquire()}; }));
    EXPECT_EQ(holder(world.servers[1]), client.lock.owner());
}

TEST(AFailover, LosesALockButNotTheExclusion) {
    SentinelWorld world;
    whole_since(world.servers[0], 1min);
    ASSERT_TRUE(wait_until([&] { return world.servers[1].command({"EXISTS", marker}) == "1"; }));
    Client first{world};
    ASSERT_THAT(first.lock.acquire(), Succeeds());
    world.lose_master();
    Client second{world};
    EXPECT_THAT(second.lock.acquire(), Reports(0, Errc::quarantined));
    Client without{world, 0ms};
    EXPECT_THAT(without.lock.acquire(), Succeeds()) << "as everybody would, without the quarantine";
    EXPECT_TRUE(first.lock.valid()) << "too slow a machine: the lock is over";
}

// It has been frozen and replaced; as it wakes up, it carries out what stands in its sockets before it looks
// for its replicas.
TEST(AFormerMaster, GetsNoLeaseThatBeginsLater) {
    SentinelWorld world;
    whole_since(world.servers[0], 1min);
    Client first{world};
    ASSERT_THAT(first.lock.acquire(), Succeeds());
    ASSERT_THAT(first.lock.release(), Succeeds());
    const auto released = boot_clock().now();
    world.lose_master();
    boot_clock().sleep_until(released + 1100ms, {});  // from then on the connection is not trusted
    whole_since(world.servers[1], 1min);              // as if its quarantine were over
    Client second{world};
    ASSERT_THAT(second.lock.acquire(), Succeeds());
    const std::jthread later{[&] {
        boot_clock().sleep_until(boot_clock().now() + 200ms, {});
        world.servers[0].thaw();
    }};
    EXPECT_EQ(first.lock.acquire().error(), Errc::held_by_other) << "over its idle connection";
    EXPECT_TRUE(second.lock.valid()) << "too slow a machine: the lock is over";
}

TEST(Sentinels, AreAskedUntilMoreThanHalfNameTheSame) {
    SentinelWorld world;
    world.sentinels[0]->freeze();
    Client client{world};
    EXPECT_THAT(client.lock.acquire(), Reports(0, Errc::quarantined)) << "two are enough";
    world.sentinels[1]->kill();
    Client another{world};
    const auto result = another.lock.acquire();
    EXPECT_EQ(result.error(), Errc::no_quorum) << "one is not, though it knows";
    world.sentinels[0]->thaw();
    Client third{world};
    EXPECT_TRUE(wait_until([&] { return third.lock.acquire().nodes()[0].cause == Errc::quarantined; }))
        << "two again, once the last inquiry is over";
    world.sentinels[2]->kill();
    Client fourth{world};
    EXPECT_THAT(fourth.lock.acquire().nodes()[0].detail, HasSubstr("of 3 Sentinels 1 named a master"));
}

TEST(Sentinels, HaveAPasswordOfTheirOwn) {
    RedisServer server{RedisConfig{}.password("ours")};
    RedisServer sentinel{
        RedisConfig{}.sentinel_of(server.port()).line("sentinel auth-pass mymaster ours").password("theirs")};
    const auto acquire = [&](const std::string& password) {
        RedisNodes nodes{
            {"redis+sentinel://:ours@" + sentinel.name() + "/mymaster?sentinel_password=" + password},
            {.node_timeout = 2s}};
        Lock lock{nodes, the_resource, no_retry(1min)};
        return lock.acquire();
    };
    EXPECT_THAT(acquire("theirs"), Succeeds());
    const auto refused = acquire("ours");
    EXPECT_THAT(refused, Reports(0, Errc::authentication_failed));
    EXPECT_THAT(refused.nodes()[0].detail, HasSubstr("authentication failed"));
}

// D7. What does not pass by itself counts as such where a majority needs those that refuse.
TEST(Sentinels, ThatRefuseThePasswordDoNotMatterBesideAMajority) {
    RedisServer server;
    const auto sentinel = [&](const std::string& password) {
        return RedisServer{RedisConfig{}.sentinel_of(server.port()).password(password)};
    };
    std::array sentinels{sentinel("theirs"), sentinel("theirs"), sentinel("another")};
    std::string uri = "redis+sentinel://";
    for (const auto& it : sentinels) uri += (&it == sentinels.data() ? "" : ",") + it.name();
    const auto acquire = [&](const std::string& password) {
        RedisNodes nodes{{uri + "/mymaster?sentinel_password=" + password}, {.node_timeout = 2s}};
        return Lock{nodes, the_resource, no_retry(1min)}.acquire();
    };
    EXPECT_THAT(acquire("theirs"), Succeeds());
    EXPECT_THAT(acquire("another"), Reports(0, Errc::authentication_failed)) << "two of three refuse it";
    sentinels[1].kill();
    EXPECT_THAT(acquire("theirs"), Reports(0, Errc::connection_failed)) << "with the killed one it would do";
}

// ---- Back and forth

struct Hold {
    Clock::time_point begin;
    Clock::time_point end;
    std::uint64_t token;
};

class FailingOver : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Nodes, FailingOver, testing::Values(1U, 3U));

// Contenders, while the one node, or one of three, fails over, and later back to the server that it began
// with.
TEST_P(FailingOver, LetsNoTwoHoldAtOnce) {
    constexpr auto ttl = 2s;
    SentinelWorld world;
    const Cluster others{GetParam() - 1};
    auto uris = others.uris();
    uris.push_back(world.uri());
    std::mutex mutex;
    std::vector<Hold> holds;  // guarded by mutex
    std::atomic<bool> over = false;
    const auto contend = [&] {
        RedisNodes nodes{uris, {.node_timeout = 500ms, .quarantine = ttl + 1s + 6s}};
        Lock lock{nodes, the_resource, {.ttl = ttl, .retry = {.attempts = 1}, .fencing = true}};
        while (!over) {
            if (!lock.acquire()) {
                boot_clock().sleep_until(boot_clock().now() + 5ms, {});
                continue;
            }
            Hold hold{boot_clock().now(), {}, lock.fencing_token()};
            boot_clock().sleep_until(hold.begin + 3ms, {});
            const auto now = boot_clock().now();
            hold.end = std::min(now, now + lock.remaining());
            (void)lock.release();
            if (hold.end <= hold.begin) continue;
            const std::lock_guard guard{mutex};
            holds.push_back(hold);
        }
    };
    const auto holds_since = [&](Clock::time_point instant) {
        return wait_until(
            [&] {
                const std::lock_guard guard{mutex};
                return std::ranges::any_of(holds, [&](const auto& it) { return it.begin > instant; });
            },
            1min);
    };
    {
        std::vector<std::jthread> contenders;
        for (int i = 0; i < 3; ++i) contenders.emplace_back(contend);
        EXPECT_TRUE(holds_since(boot_clock().now()));
        for (const std::size_t next : {1U, 0U}) {
            world.fail_over_to(world.servers[next]);
            world.follow(world.servers[1 - next], world.servers[next]);
            EXPECT_TRUE(wait_until(
                [&] { return world.servers[next].info("replication", "connected_slaves") == "1"; }, 1min));
            EXPECT_TRUE(holds_since(boot_clock().now()));
        }
        over = true;
    }
    std::ranges::sort(holds, {}, &Hold::begin);
    for (std::size_t i = 1; i < holds.size(); ++i) {
        EXPECT_LE(holds[i - 1].end, holds[i].begin) << "hold " << i << " of " << holds.size();
        EXPECT_LT(holds[i - 1].token, holds[i].token) << "hold " << i;
    }
}

}  // namespace
}  // namespace redlock::test
