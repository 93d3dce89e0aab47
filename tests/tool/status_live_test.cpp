// `redlock status` against real servers.
#include "invocation.hpp"
#include "live_world.hpp"

#include <algorithm>

namespace redlock::test::status_live_test {
namespace {

Invocation status(const Cluster& cluster, const std::vector<std::string>& more = {}) {
    return Invocation{cluster.uri_list(), joined({"status", the_resource}, more)};
}

TEST(Status, ReportsTheHolderAndTheExpiry) {
    LiveWorld world{3};
    auto lock = world.lock(LockOptions{.ttl = 1min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto json = status(world, {"--json"}).json();
    EXPECT_EQ(json.at("state"), "held");
    EXPECT_EQ(json.at("owner"), lock.owner());
    EXPECT_EQ(json.at("ours"), true);
    EXPECT_EQ(json.at("held_on"), 3);
    EXPECT_GT(json.at("expires_in_ms"), 30'000);
    EXPECT_LE(json.at("expires_in_ms"), 60'000);
    ASSERT_EQ(json.at("nodes").size(), 3U);
    EXPECT_EQ(json["nodes"][1].at("owner"), lock.owner());
    EXPECT_EQ(json["nodes"][1].at("fencing_count"), 0);
    auto text = status(world);
    EXPECT_EQ(text.status(), 0);
    EXPECT_THAT(text.output(), HasSubstr("held by " + std::string{lock.owner()} + " on 3 of 3 nodes"));
    EXPECT_THAT(text.output(), Not(HasSubstr("FENCING")));
}

TEST(Status, ShowsTheHolderDescriptionAndTheWaiters) {
    LiveWorld world{3};
    auto lock = world.lock(LockOptions{.ttl = 1min, .holder = "host=web1\n"});
    ASSERT_THAT(lock.acquire(), Succeeds());
    ASSERT_EQ(
        world[1].command({"ZADD", std::string{"{"} + the_resource + "}:queue", "1", "redlock:wake:a|1"}),
        "1");
    const auto shows = [&] {
        const auto json = status(world, {"--json"}).json();
        return json.at("holder") == "host=web1\n" && json["nodes"][1].at("waiting") == 1;
    };
    EXPECT_TRUE(wait_until(shows)) << "the note is not waited for";
    auto text = status(world);
    EXPECT_EQ(text.status(), 0);
    EXPECT_THAT(text.output(), HasSubstr("WAITING"));
    EXPECT_THAT(text.output(), HasSubstr("expires in "));
    EXPECT_THAT(text.output(), HasSubstr(": host=web1\\x0a\n"));
}

TEST(Status, ShowsTheFencingCount) {
    LiveWorld world{3};
    auto lock = world.lock(LockOptions{.ttl = 1min, .fencing = true});
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto said = status(world, {"--json"}).json();
    const auto counted = [&](const auto& node) { return node.at("fencing_count") == lock.fencing_token(); };
    EXPECT_GE(std::ranges::count_if(said.at("nodes"), counted), 2);
    auto text = status(world);
    EXPECT_EQ(text.status(), 0);
    EXPECT_THAT(text.output(), HasSubstr("FENCING COUNT"));
    EXPECT_THAT(text.output(), HasSubstr(std::to_string(lock.fencing_token())));
}

TEST(Status, ReportsKeysThatAreNotLocks) {
    LiveWorld world{4};
    ASSERT_EQ(world[0].command({"LPUSH", the_resource, "1"}), "1");
    ASSERT_EQ(world[1].command({"SET", the_resource, "forgotten"}), "OK");
    ASSERT_EQ(world[2].command({"SET", the_resource, "\x1b[31mred\n", "PX", "60000"}), "OK");
    auto text = status(world);
    EXPECT_EQ(text.status(), 1);
    EXPECT_THAT(text.output(), HasSubstr("no lock: list"));
    EXPECT_THAT(text.output(), HasSubstr("no lock: string without an expiry"));
    EXPECT_THAT(text.output(), HasSubstr("\"\\x1b[31mred\\x0a\""));
    EXPECT_THAT(text.output(), HasSubstr("on 2 of 4 nodes the key is no lock"));
    const auto json = status(world, {"--json"}).json();
    EXPECT_EQ(json["nodes"][0].at("type"), "list");
    EXPECT_EQ(json["nodes"][1].at("state"), "no_lock");
    EXPECT_EQ(json["nodes"][2].at("ours"), false);
    EXPECT_EQ(json["nodes"][3].at("state"), "free");
    for (const auto* const field : {"owner", "ours", "expires_in_ms", "holder", "type", "cause"})
        EXPECT_TRUE(json["nodes"][3].at(field).is_null()) << field;
    EXPECT_EQ(json["nodes"][3].at("readers"), 0);
}

TEST(Status, ReportsWhyANodeDidNotAnswer) {
    LiveWorld world{3};
    auto lock = world.lock();
    ASSERT_THAT(lock.acquire(), Succeeds());
    world[2].kill();
    auto text = status(world);
    EXPECT_EQ(text.status(), 0);
    EXPECT_THAT(text.output(), HasSubstr("connection failed: Connection refused"));
    EXPECT_THAT(text.output(), HasSubstr("on 2 of 3 nodes"));
    world[1].kill();
    auto json = status(world, {"--json"});
    EXPECT_EQ(json.status(), 69);
    EXPECT_THAT(json.json().at("summary").get<std::string>(), HasSubstr("(Connection refused)"));
    Invocation who{world.uri_list(), {"who", the_resource}};
    EXPECT_EQ(who.status(), 69);
    EXPECT_THAT(who.output(), HasSubstr("; " + world[1].name() + " connection failed (Connection refused)"));
}

TEST(Status, OnlyReads) {
    LiveWorld world{1};
    auto lock = world.lock(LockOptions{.fencing = true});
    ASSERT_THAT(lock.acquire(), Succeeds());
    ASSERT_EQ(world[0].command({"CONFIG", "RESETSTAT"}), "OK");
    EXPECT_EQ(status(world).status(), 0);
    const auto stats = world[0].command({"INFO", "commandstats"});
    EXPECT_THAT(stats, HasSubstr("cmdstat_get"));
    for (const auto* forbidden : {"cmdstat_set", "cmdstat_del", "cmdstat_zadd", "cmdstat_pexpire"})
        EXPECT_THAT(stats, Not(HasSubstr(forbidden)));
}

TEST(Status, ReportsAHolderWithAValueOfAnySize) {
    LiveWorld world{3};
    for (auto& node : world)
        ASSERT_EQ(node.command({"SET", the_resource, std::string(200'000, 'x'), "PX", "60000"}), "OK");
    auto it = status(world);
    EXPECT_EQ(it.status(), 0) << it.output();
    EXPECT_THAT(it.output(), HasSubstr("no owner of this library"));
}

TEST(Status, AsksFrozenNodesAtOnce) {
    LiveWorld world{5};
    for (auto& node : world) node.freeze();
    Invocation it{world.uri_list(), {"status", the_resource}, "1s"};
    EXPECT_THAT(time_taken([&] { EXPECT_EQ(it.status(), 69); }), LastsAtMost(3s));
    for (auto& node : world) node.thaw();
}

TEST(Who, PrintsOneLine) {
    LiveWorld world{3};
    Invocation nobody{world.uri_list(), {"who", the_resource}};
    EXPECT_EQ(nobody.status(), 1);
    EXPECT_EQ(nobody.output(), "free\n");
    auto lock = world.lock(LockOptions{.ttl = 1min, .holder = "host=web1"});
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto said = [&] {
        Invocation it{world.uri_list(), {"who", the_resource}};
        EXPECT_EQ(it.status(), 0);
        return it.output();
    };
    EXPECT_TRUE(wait_until([&] { return said().ends_with(": host=web1\n"); })) << said();
    Invocation other{world.uri_list(), {"break", "--owner", std::string(40, '0'), the_resource}};
    EXPECT_EQ(other.status(), 75);
    EXPECT_TRUE(lock.extend());
    Invocation broken{world.uri_list(), {"break", "--owner", std::string{lock.owner()}, the_resource}};
    EXPECT_EQ(broken.status(), 0);
    EXPECT_FALSE(lock.extend());
}

}  // namespace
}  // namespace redlock::test::status_live_test
