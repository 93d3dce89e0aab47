// Rules B1 and B5: the release goes behind its SET on the same connection, so that no SET outlives its
// release while connections live.
#include "fault_world.hpp"

#include <algorithm>

namespace redlock::test {
namespace {

/// Three nodes, of which the last stops answering. A majority always answers.
class ReleaseOrder : public testing::Test {
protected:
    explicit ReleaseOrder(std::chrono::milliseconds node_timeout = 300ms)
        : world{3, {.node_timeout = node_timeout, .round = Round::all_at_once}} {
        world.warm_up();
        silent.record();
    }

    /// Acquires without an answer from the silent node; its SET is under way.
    void acquire_without_an_answer(Lock& lock) {
        const auto result = lock.acquire();
        ASSERT_THAT(result, Succeeds());
        ASSERT_THAT(result, Reports(2, Errc::not_awaited));
        ASSERT_TRUE(result.nodes()[2].sent);
    }

    /// The owner's commands, in the link's order.
    std::vector<support::SeenCommand> commands_signed(std::string_view owner) {
        auto result = silent.commands();
        std::erase_if(result, [&](const auto& command) {
            return std::ranges::find(command.words, owner) == command.words.end();
        });
        return result;
    }

    FaultWorld world;
    TcpProxy& silent = world.link(2);
};

// B5. SET, release: on one connection, in this order; nothing is left when the link is back.
TEST_F(ReleaseOrder, AReleaseGoesBehindItsSetOnTheSameConnection) {
    silent.black_hole();
    auto lock = world.lock();
    acquire_without_an_answer(lock);
    const auto owner = std::string{lock.owner()};
    (void)lock.release();
    silent.heal();
    ASSERT_TRUE(wait_until([&] { return commands_signed(owner).size() >= 2; }));
    const auto seen = commands_signed(owner);
    EXPECT_EQ(seen[0].words[0], "SET");
    EXPECT_EQ(seen[1].words[0], "EVAL");
    EXPECT_EQ(seen[0].connection, seen[1].connection);
    EXPECT_TRUE(wait_until([&] { return silent.traffic().waiting_bytes == 0 && world.clean(); }));
}

/// A busy machine takes its time for megabytes, on the two healthy nodes as well.
struct ReleaseOrderOfMuch : ReleaseOrder {
    ReleaseOrderOfMuch() : ReleaseOrder{5s} {}
};

// B1. A SET that was only partly written is pending like a whole one, and released behind itself.
TEST_F(ReleaseOrderOfMuch, ASetOfAMegabyteThatIsHalfWrittenIsReleasedToo) {
    silent.black_hole();
    auto lock = world.lock(std::string(4U << 20U, 'r'), {.ttl = 60s});
    acquire_without_an_answer(lock);
    const auto owner = std::string{lock.owner()};
    (void)lock.release();
    silent.heal();
    // The library alone can write what is still in its buffer: the next round does.
    ASSERT_TRUE(wait_until([&] {
        (void)world.lock("another").acquire();
        return commands_signed(owner).size() >= 2;
    }));
    EXPECT_EQ(commands_signed(owner)[0].connection, commands_signed(owner)[1].connection);
    EXPECT_TRUE(wait_until([&] { return silent.traffic().waiting_bytes == 0 && world.clean(); }));
}

}  // namespace
}  // namespace redlock::test
