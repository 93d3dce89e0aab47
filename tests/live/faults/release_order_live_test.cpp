// Rules B1 and B5: the release is pipelined after its SET on the same connection, so that no SET outlives its
// release while the connections live.
#include "fault_world.hpp"

#include <algorithm>

namespace redlock::test {
namespace {

/// Three nodes, of which the last one stops replying. A majority always replies.
class ReleaseOrder : public testing::Test {
protected:
    explicit ReleaseOrder(std::chrono::milliseconds node_timeout = 300ms)
        : world{3, {.node_timeout = node_timeout, .round = Round::all_at_once}} {
        world.warm_up();
        silent.record();
    }

    /// Acquires without a reply of the silent node, whose SET is on its way.
    void acquire_without_an_answer(Lock& lock) {
        const auto result = lock.acquire();
        ASSERT_THAT(result, Succeeds());
        ASSERT_THAT(result, Reports(2, Errc::not_awaited));
        ASSERT_TRUE(result.nodes()[2].sent);
    }

    /// Returns the commands with this owner, in the order of the proxy.
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

// B5. The SET and the release are on one connection, in this order. Nothing is left when the proxy is healed.
TEST_F(ReleaseOrder, AReleaseFollowsItsSetOnTheSameConnection) {
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

/// A busy machine needs long for megabytes, also on the two healthy nodes.
struct ReleaseOrderOfLargeCommands : ReleaseOrder {
    ReleaseOrderOfLargeCommands() : ReleaseOrder{5s} {}
};

// B1. A SET that was only partly written is pending like a whole one, and the release follows it.
TEST_F(ReleaseOrderOfLargeCommands, APartlyWrittenSetOfAMegabyteIsReleased) {
    silent.black_hole();
    auto lock = world.lock(std::string(4U << 20U, 'r'), {.ttl = 60s});
    acquire_without_an_answer(lock);
    const auto owner = std::string{lock.owner()};
    (void)lock.release();
    silent.heal();
    // Only the library can write the rest of its buffer, which the next round does.
    ASSERT_TRUE(wait_until([&] {
        (void)world.lock("another").acquire();
        return commands_signed(owner).size() >= 2;
    }));
    EXPECT_EQ(commands_signed(owner)[0].connection, commands_signed(owner)[1].connection);
    EXPECT_TRUE(wait_until([&] { return silent.traffic().waiting_bytes == 0 && world.clean(); }));
}

}  // namespace
}  // namespace redlock::test
