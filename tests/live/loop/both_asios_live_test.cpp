// Boost.Asio and standalone Asio in one program, with the same nodes.
#include "live/live_world.hpp"
#include "one_asio.hpp"

namespace redlock::test::both_asios_live_test {
namespace {

TEST(BothAsios, WorkInOneProgram) {
    LiveWorld world;
    const auto boost = with_boost(world.nodes);
    const auto standalone = with_standalone(world.nodes);
    EXPECT_NE(boost->type(), standalone->type()) << "the linker would mix their functions";
    for (int i = 0; i < 2; ++i) {
        EXPECT_THAT(boost->try_acquire(), Succeeds());
        EXPECT_EQ(standalone->try_acquire().error(), Errc::held_by_other);
        EXPECT_THAT(boost->release(), Succeeds());
        EXPECT_THAT(standalone->try_acquire(), Succeeds());
        EXPECT_EQ(boost->try_acquire().error(), Errc::held_by_other);
        EXPECT_THAT(standalone->release(), Succeeds());
    }
    EXPECT_TRUE(world.clean());
}

}  // namespace
}  // namespace redlock::test::both_asios_live_test
