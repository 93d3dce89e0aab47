// What query() concludes from the replies of the nodes, and what LockOptions::holder stores there.
#include "fronts.hpp"
#include "support/node_states.hpp"

#include <redlock/query.hpp>

#include <string>
#include <vector>

namespace redlock::test::query_test {
namespace {

using detail::conclude;
using support::nodes_of;
using Kind = LockStatus::Kind;
using State = NodeStatus::State;

// ---- Conclusions

struct Row {
    const char* keys;
    Kind kind;
};

TEST(Query, ReturnsTheStateOnAMajority) {
    const std::vector<Row> table{
        {"aaaaa", Kind::held},      {"aaabb", Kind::held},      {"aaa??", Kind::held},
        {"aaa..", Kind::held},      {".....", Kind::free},      {"...aa", Kind::free},
        {"...??", Kind::free},      {"aabb.", Kind::split},     {"aa..b", Kind::split},
        {"aa!!!", Kind::split},     {"aa..?", Kind::uncertain}, {"aab??", Kind::uncertain},
        {"..ab?", Kind::uncertain}, {"a..??", Kind::uncertain}, {"aa???", Kind::no_quorum},
        {"?????", Kind::no_quorum}, {"aa", Kind::held},         {"a.", Kind::split},
        {"a?", Kind::no_quorum},    {"a", Kind::held},          {"a.a.", Kind::split},
        {"!!!!!", Kind::split},
    };
    for (const auto& [keys, kind] : table) EXPECT_EQ(conclude(nodes_of(keys)).kind, kind) << keys;
}

// The keys expire after 10, 11, 12, 13 and 14 s. The majority of five nodes is gone when the third key
// expires.
TEST(Query, ReportsTheExpiryOfTheMajority) {
    EXPECT_EQ(conclude(nodes_of("aaaaa")).expires_in, 12s);
    EXPECT_EQ(conclude(nodes_of("aaa..")).expires_in, 10s);
    EXPECT_EQ(conclude(nodes_of("..aaa")).expires_in, 12s);
    EXPECT_EQ(conclude(nodes_of("a")).expires_in, 10s);
    EXPECT_EQ(conclude(nodes_of("aabb.")).expires_in, -1ms);
}

TEST(Query, ShowsTheDescriptionOfTheOwnerOnly) {
    auto nodes = nodes_of("aba");
    nodes[1].holder = "another";
    EXPECT_EQ(conclude(nodes).holder, "");
    nodes[2].holder = "the owner";
    EXPECT_EQ(conclude(nodes).holder, "the owner");
}

// A server accepts an expiry that is longer than the clock can count.
TEST(Query, LimitsTheExpiryToACentury) {
    const auto expires_in = [](const std::string& ttl) {
        NodeReport report;
        report.vote = Vote::granted;
        report.cause = {};
        report.detail = "string " + ttl + " 0 0 0 5\nowner";
        return detail::to_status(report).expires_in;
    };
    EXPECT_EQ(expires_in("8212"), 8212ms);
    EXPECT_EQ(expires_in("31536000000000"), std::chrono::hours{24 * 36'525});
    EXPECT_EQ(expires_in("9223372036854775807"), std::chrono::hours{24 * 36'525});
}

// ---- The holder description

struct HolderDescription : testing::TestWithParam<Front> {
    std::string note_on(std::size_t node) { return world.command(node, {"GET", "{orders:42}:holder"}); }

    AnyWorld world{GetParam()};
    AnyLock lock = world.held({.ttl = 10s, .fencing = true, .holder = "host=web1 pid=7"});
    const std::string owner{lock.owner()};
};
INSTANTIATE_TEST_SUITE_P(Each, HolderDescription, each_front, testing::PrintToStringParamName());

TEST_P(HolderDescription, IsReturnedByAQuery) {
    const auto status = query(world, the_resource);
    EXPECT_EQ(status.kind, Kind::held);
    EXPECT_EQ(status.owner, lock.owner());
    EXPECT_EQ(status.held_on, 5U);
    EXPECT_EQ(status.expires_in, 10s);
    EXPECT_EQ(status.holder, "host=web1 pid=7");
    for (const auto& node : status.nodes) {
        EXPECT_EQ(node.state, State::held);
        EXPECT_EQ(node.holder, "host=web1 pid=7");
        EXPECT_EQ(node.fencing_count, lock.fencing_token());
        EXPECT_EQ(node.waiters, 0U);
    }
    EXPECT_EQ(query(world, "another").kind, Kind::free);
}

TEST_P(HolderDescription, LastsAsLongAsTheLock) {
    world.pass(4s);
    EXPECT_THAT(world.ttl_on(0, "{orders:42}:holder"), Lasts(6s));
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(world.ttl_on(0, "{orders:42}:holder"), Lasts(10s));
}

TEST_P(HolderDescription, IsDeletedByTheRelease) {
    for (const bool destroys : {true, false}) {
        destroys ? (void)AnyLock{std::move(lock)} : (void)lock.release();
        for (std::size_t node = 0; node < 5; ++node) EXPECT_EQ(note_on(node), "(nil)");
        lock = world.lock(LockOptions{.holder = "host=web1 pid=7"});
        ASSERT_THAT(lock.acquire(), Succeeds());
    }
}

TEST_P(HolderDescription, IsDeletedByTheReleaseBesideAKeyOfAnotherType) {
    auto both = world.held({"a", "b"}, {.holder = "me"});
    world.command(0, {"DEL", "a"});
    world.command(0, {"RPUSH", "a", "x"});
    (void)both.release();
    for (const auto* const key : {"{a}:holder", "{b}:holder"})
        EXPECT_EQ(world.command(0, {"GET", key}), "(nil)") << key;
}

TEST_P(HolderDescription, IsNotWrittenByAReader) {
    (void)lock.release();
    world.forget_events();
    auto reader = world.lock({.ttl = 10s, .shared = true, .holder = "host=web1 pid=8"});
    ASSERT_TRUE(reader.acquire());
    (void)reader.extend();
    (void)reader.release();
    EXPECT_THAT(world.events(), testing::Not(testing::Contains(testing::HasSubstr("note"))));
}

// A description may arrive late, after the release. By then another client may hold the resource.
TEST_P(HolderDescription, IsNotWrittenIfAnotherClientHoldsTheResource) {
    const auto late = [&](milliseconds ttl) {
        return world.ask({.command = {.verb = Verb::describe_holder,
                                      .resources = lock.resources(),
                                      .owner = owner,
                                      .ttl = ttl,
                                      .description = "late"}});
    };
    (void)lock.release();
    EXPECT_EQ(late(10s).granted(), 5U);
    EXPECT_EQ(note_on(0), "(nil)");
    auto next = world.held({.ttl = 20s, .holder = "the next"});
    EXPECT_EQ(late(10s).granted(), 5U);
    EXPECT_EQ(late({}).granted(), 5U);
    EXPECT_EQ(query(world, the_resource).holder, "the next");
    (void)next.release();
}

// The deletion and the release may use different connections.
TEST_P(HolderDescription, IsDeletedEvenIfTheReleaseArrivesLater) {
    ASSERT_NE(note_on(0), "(nil)");
    (void)world.ask({.command = {.verb = Verb::describe_holder,
                                 .resources = lock.resources(),
                                 .owner = owner,
                                 .description = "of the lock"}});
    EXPECT_TRUE(lock.valid());
    EXPECT_EQ(note_on(0), "(nil)");
}

// The description of an earlier holder does not describe the next one.
TEST_P(HolderDescription, IsShownOnlyForItsOwner) {
    world.occupy(5s, 0, 1, 2, 3, 4);
    const auto status = query(world, the_resource);
    EXPECT_EQ(status.owner, "somebody else");
    EXPECT_EQ(status.holder, "");
}

TEST_P(HolderDescription, DoesNotAffectAnyVote) {
    (void)lock.release();
    for (std::size_t node = 0; node < 5; ++node) world.command(node, {"RPUSH", "{orders:42}:holder", "x"});
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
}

TEST_P(HolderDescription, IsWrittenForEachOfSeveralResources) {
    auto both = world.held({"a", "b"}, {.holder = "me"});
    for (const auto* const resource : {"a", "b"}) EXPECT_EQ(query(world, resource).holder, "me");
}

// Otherwise the description would stay for ever. The other resources get theirs nevertheless.
TEST_P(HolderDescription, IsNotWrittenBesideAKeyWithoutExpiry) {
    auto both = world.held({"a", "b"}, {.holder = "me"});
    const std::string owner_of_both{both.owner()};
    for (const auto* const key : {"{a}:holder", "{b}:holder"}) world.command(0, {"DEL", key});
    world.command(0, {"SET", "a", owner_of_both});
    world.ask({.command = {.verb = Verb::describe_holder,
                           .resources = both.resources(),
                           .owner = owner_of_both,
                           .ttl = 10s,
                           .description = "me"}});
    EXPECT_EQ(world.command(0, {"GET", "{a}:holder"}), "(nil)");
    EXPECT_EQ(world.command(0, {"GET", "{b}:holder"}), owner_of_both + " me");
}

// A watchdog must not be kept from its next extension by a description, which is only for people.
TEST(AHolderDescription, IsWrittenWithinTheDeadlineOfTheCallerWithoutWaiting) {
    World world;
    RoundLimits of_round;
    world.before_round = [&](auto&&, const RoundLimits& limits) { of_round = limits; };
    const std::vector<std::string> resources{"r"};
    const auto deadline = world.clock.now() + 5ms;
    Lease lease;
    lease.may_hold_key.set();
    algorithm::describe_holder(world, resources, lease, "host=web1", 10s, deadline);
    EXPECT_EQ(of_round.deadline, deadline);
    EXPECT_FALSE(of_round.awaits_answers);
}

// The resource account:{42}:holder has the same name as the key for the description of account:{42}.
TEST(HolderDescriptionKey, DoesNotOverwriteALockWithTheSameName) {
    World world;
    auto lock = world.held("account:{42}:holder");
    for (const bool unlocks : {true, false}) {
        auto described = world.held("account:{42}", {.ttl = 10s, .holder = "host=web1 pid=7"});
        EXPECT_THAT(described.extend(), Succeeds());
        unlocks ? described.unlock() : (void)described.release();
        EXPECT_TRUE(lock.valid());
        EXPECT_EQ(world.lock("account:{42}:holder").try_acquire().error(), Errc::held_by_other);
    }
    EXPECT_THAT(lock.release(), Succeeds());
}

TEST(HolderDescriptionKey, DoesNotOverwriteAnotherResourceOfTheSameLock) {
    World world;
    auto both = world.held({"a:{1}", "a:{1}:holder"}, {.holder = "me"});
    EXPECT_THAT(both.extend(), Succeeds());
    EXPECT_EQ(query(world, "a:{1}:holder").owner, both.owner());
    EXPECT_THAT(both.release(), Succeeds());
}

TEST(HolderDescriptionKey, DoesNotOverwriteAForeignKey) {
    World world;
    world.command(0, {"RPUSH", "{orders:42}:holder", "x"});
    world.command(1, {"SET", "{orders:42}:holder", "a text of the user's"});
    auto lock = world.held({.ttl = 10s, .holder = "host=web1 pid=7"});
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(world.command(0, {"TYPE", "{orders:42}:holder"}), "list");
    EXPECT_EQ(world.command(1, {"GET", "{orders:42}:holder"}), "a text of the user's");
    EXPECT_EQ(world.command(2, {"EXISTS", "{orders:42}:holder"}), "0");
}

TEST(Query, CountsTheReaders) {
    World world;
    auto one = world.held({.ttl = 5s, .shared = true});
    auto other = world.held({.ttl = 60s, .shared = true});
    const auto status = query(world, the_resource);
    EXPECT_EQ(status.kind, Kind::held);
    EXPECT_EQ(status.owner, "redlock:shared");
    EXPECT_EQ(status.readers, 2U);
    world.pass(6s);
    EXPECT_EQ(query(world, the_resource).readers, 1U) << "although the other reader was not removed";
}

TEST(Query, ReportsKeysThatAreNotLocks) {
    World world;
    world.command(0, {"RPUSH", the_resource, "x"});
    world.command(1, {"SET", the_resource, "x"});
    const auto status = query(world, the_resource);
    EXPECT_EQ(status.no_locks, 2U);
    EXPECT_EQ(status.nodes[0].type, "list");
    EXPECT_EQ(status.nodes[1].type, "string without an expiry");
    EXPECT_EQ(status.nodes[2].state, State::free);
}

TEST(Query, ReturnsAnyBytesAsTheOwner) {
    using namespace std::string_literals;
    World world{1};
    const auto value = "a b\n1 2\0\xff"s;
    world.command(0, {"SET", the_resource, value, "PX", "5000"});
    EXPECT_EQ(query(world, the_resource).owner, value);
    world.command(0, {"SET", the_resource, std::string(100'000, 'x'), "PX", "5000"});
    EXPECT_EQ(query(world, the_resource).owner, std::string(512, 'x'));
}

// An application's value under the key of the counter says nothing of the lock.
TEST(Query, IgnoresAForeignCount) {
    const std::string identity = std::string(40, 'a') + ':' + std::string(40, 'b') + ':';
    for (const auto& foreign : {std::string{"x:99999999999999999999999"}, std::string{"order:7"},
                                identity + "99999999999999999999999", identity + "9000000000000000"}) {
        World world{1};
        auto lock = world.held();
        world.command(0, {"SET", "{" + std::string{the_resource} + "}:fence", foreign});
        const auto status = query(world, the_resource);
        EXPECT_EQ(status.kind, Kind::held) << foreign;
        EXPECT_EQ(status.nodes[0].fencing_count, 0U) << foreign;
    }
}

TEST(Query, ReportsWhyANodeDoesNotAnswer) {
    World world;
    world.cut(0);
    world.silence(1, 2);
    const auto took = time_taken(world, [&] {
        const auto status = query(world, the_resource);
        EXPECT_EQ(status.kind, Kind::no_quorum);
        EXPECT_EQ(status.answered, 2U);
        EXPECT_EQ(status.nodes[0].cause, Errc::connection_failed);
        EXPECT_EQ(status.nodes[1].cause, Errc::timed_out);
    });
    EXPECT_THAT(took, Lasts(50ms));
    EXPECT_THAT(refusal([&] { (void)query(world, ""); }), HasSubstr("empty"));
}

// A server that is not Redis may send a reply without the expected words.
TEST(Query, RejectsAReplyOfTheWrongForm) {
    for (const std::string answer :
         {"", "string", "string 1 2 3", "string 10 0 0 0 9\nshort", "string x 0 0 0 0\n"}) {
        NodeReport report{.name = "a", .vote = Vote::granted, .cause = {}};
        report.detail = answer;
        EXPECT_EQ(detail::to_status(report).cause, Errc::unexpected_reply) << answer;
    }
}

}  // namespace
}  // namespace redlock::test::query_test
