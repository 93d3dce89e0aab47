// Rules B1 and B5: the release follows its SET wherever that went, on the same connection and behind it, so
// that no SET outlives its release while connections live.
#include "fault_world.hpp"

#include <algorithm>
#include <set>

namespace redlock::test {
namespace {

/// Three nodes, of which the last falls into a black hole. A majority is always there.
class ReleaseOrder : public testing::Test {
protected:
    explicit ReleaseOrder(std::chrono::milliseconds node_timeout = 300ms)
        : world{3, {.node_timeout = node_timeout, .round = Round::all_at_once}} {
        world.warm_up();
        hole.record();
    }

    /// Acquires without an answer from the hole; its SET is under way.
    void acquire_over_the_hole(Lock& lock) {
        const auto result = lock.acquire();
        ASSERT_THAT(result, Succeeds());
        ASSERT_THAT(result, Reports(2, Errc::not_awaited));
        ASSERT_TRUE(result.nodes()[2].sent);
    }

    /// What the owner's SET and release were, in the link's order.
    std::vector<support::SeenCommand> commands_signed(std::string_view owner) {
        auto result = hole.commands();
        std::erase_if(result, [&](const auto& command) {
            return std::ranges::find(command.words, owner) == command.words.end();
        });
        return result;
    }

    /// How many connections over the hole two locks use that are held at once; both are released again.
    std::size_t used_connections(Lock& first, Lock& second) {
        std::set<std::size_t> connections;
        (void)first.acquire();
        (void)second.acquire();
        for (const auto* lock : {&first, &second})
            for (const auto& command : commands_signed(lock->owner())) connections.insert(command.connection);
        (void)first.release();
        (void)second.release();
        return connections.size();
    }

    FaultWorld world;
    TcpProxy& hole = world.link(2);
};

// B5. SET, release: on one connection, in this order; nothing is left when the link is back.
TEST_F(ReleaseOrder, AReleaseGoesBehindItsSetOnTheSameConnection) {
    hole.black_hole();
    auto lock = world.lock();
    acquire_over_the_hole(lock);
    const auto owner = std::string{lock.owner()};
    (void)lock.release();
    hole.heal();
    ASSERT_TRUE(wait_until([&] { return commands_signed(owner).size() >= 2; }));
    const auto seen = commands_signed(owner);
    EXPECT_EQ(seen[0].words[0], "SET");
    EXPECT_EQ(seen[1].words[0], "EVAL");
    EXPECT_EQ(seen[0].connection, seen[1].connection);
    EXPECT_TRUE(wait_until([&] { return quiet(hole) && world.clean(); }));
}

// B5. Each release finds its own SET among the connections that owe replies.
TEST_F(ReleaseOrder, EachReleaseFindsTheConnectionOfItsOwnSet) {
    auto first = world.lock("first");
    auto second = world.lock("second");
    hole.delay(10ms);  // while the one connection owes, a second is made
    ASSERT_TRUE(wait_until([&] { return used_connections(first, second) == 2; }));
    hole.heal();
    world.warm_up();
    hole.black_hole();
    acquire_over_the_hole(first);
    acquire_over_the_hole(second);
    const std::vector<std::string> owners{std::string{first.owner()}, std::string{second.owner()}};
    (void)first.release();  // the connection used last is that of the second
    (void)second.release();
    hole.heal();
    std::vector<std::size_t> connections;
    for (const auto& owner : owners) {
        ASSERT_TRUE(wait_until([&] { return commands_signed(owner).size() >= 2; }));
        const auto seen = commands_signed(owner);
        EXPECT_EQ(seen[0].connection, seen[1].connection);
        connections.push_back(seen[0].connection);
    }
    EXPECT_NE(connections[0], connections[1]);
    EXPECT_TRUE(wait_until([&] { return quiet(hole) && world.clean(); }));
}

// B1, B5. Also when the lock was extended so often that the connection owes as much as it ever may.
TEST_F(ReleaseOrder, NothingQueuedKeepsAReleaseFromItsSet) {
    hole.black_hole();
    auto lock = world.lock({.ttl = 60s});
    acquire_over_the_hole(lock);
    for (int i = 0; i < 100; ++i) ASSERT_THAT(lock.extend(), Succeeds());
    (void)lock.release();
    hole.heal();
    ASSERT_TRUE(wait_until([&] { return !commands(hole, "EVAL").empty() && quiet(hole); }));
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

// B1, D4. The connection broke with the SET carried out and unanswered: the release takes a new one.
TEST_F(ReleaseOrder, AReleaseTakesANewConnectionWhenThatOfItsSetBroke) {
    hole.hold();
    auto lock = world.lock();
    acquire_over_the_hole(lock);
    ASSERT_TRUE(wait_until([&] { return world.keys_of(lock.owner()) == 3; }));
    hole.reset();
    hole.release();
    EXPECT_EQ(count(lock.release(), Vote::granted), 3U);
    EXPECT_TRUE(world.clean());
}

// B5. What a broken connection leaves behind lives a ttl at most.
TEST_F(ReleaseOrder, AStrayKeyOfABrokenConnectionExpires) {
    hole.hold();
    auto lock = world.lock({.ttl = 2s});
    acquire_over_the_hole(lock);
    ASSERT_TRUE(wait_until([&] { return world.keys_of(lock.owner()) == 3; }));
    hole.reset();
    hole.refuse();
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(holder(world[0]), "(nil)");
    EXPECT_THAT(expiry(world[2]), LastsAtMost(2s));
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

/// A busy machine takes its time for megabytes, on the two healthy nodes as well.
struct ReleaseOrderOfMuch : ReleaseOrder {
    ReleaseOrderOfMuch() : ReleaseOrder{5s} {}
};

// B1. A SET that was only partly written is owed like a whole one, and released behind itself.
TEST_F(ReleaseOrderOfMuch, ASetOfAMegabyteThatIsHalfWrittenIsReleasedToo) {
    hole.black_hole();
    auto lock = world.lock(std::string(4U << 20U, 'r'), {.ttl = 60s});
    acquire_over_the_hole(lock);
    const auto owner = std::string{lock.owner()};
    (void)lock.release();
    hole.heal();
    // Nobody but the library can write what is still in its buffer: the next round does.
    ASSERT_TRUE(wait_until([&] {
        (void)world.lock("another").acquire();
        return commands_signed(owner).size() >= 2;
    }));
    EXPECT_EQ(commands_signed(owner)[0].connection, commands_signed(owner)[1].connection);
    EXPECT_TRUE(wait_until([&] { return quiet(hole) && world.clean(); }));
}

// A5, B5. A failed attempt cleans up behind itself the same way, attempt by attempt, each under its own name.
TEST_F(ReleaseOrder, AFailedAttemptLeavesNothingEitherOnceTheLinksAreBack) {
    world.link(1).record();
    world.link(1).black_hole();
    hole.black_hole();
    auto lock = world.lock({.retry = {.attempts = 3, .delay = 5ms}});
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum));
    for (auto& link : world.links()) link.heal();
    for (auto* const link : {&world.link(1), &hole})
        ASSERT_TRUE(wait_until([&] { return !commands(*link, "EVAL").empty() && quiet(*link); }));
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

}  // namespace
}  // namespace redlock::test
