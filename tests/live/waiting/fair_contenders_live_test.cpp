// LockOptions::fair beside those that know of no queue: locks without it, and clients in other languages.
// They wake nobody and do not wait for their turn; exclusion is the same for all.
#include "waiting_world.hpp"

#include "wire/scripts.hpp"

namespace redlock::test::fair_contenders_live_test {
namespace {

struct Contenders : testing::Test {
    LiveWorld world{5, timeouts()};

    void SetUp() override { ASSERT_TRUE(world.warm_up()); }

    void set_on_all(milliseconds ttl = 1min) {
        for (auto& server : world) ASSERT_EQ(occupy(server, ttl), "OK");
    }
};

// The first in the queue asks: after each pause, and every poll interval.
TEST_F(Contenders, TheReleaseOfAPlainLockIsNoticed) {
    auto plain = world.lock(no_retry(1min));
    ASSERT_THAT(plain.acquire(), Succeeds());
    Waiters waiters{world[0], world.uris(), 3};
    const auto released = now();
    EXPECT_THAT(plain.release(), Succeeds());
    expect_delay("plain lock released: the first", waiters.first_held_at() - released, first_asks_every());
    waiters.expect_order();
}

TEST_F(Contenders, TheReleaseOfAForeignClientIsNoticed) {
    set_on_all();
    Waiters waiters{world[0], world.uris(), 3};
    const auto released = now();
    const std::string script{detail::scripts::compare_and_delete.text};
    for (auto& server : world) ASSERT_EQ(server.command({"EVAL", script, "1", the_resource, "another"}), "1");
    expect_delay("foreign client released: the first", waiters.first_held_at() - released,
                 first_asks_every() + poll_interval);
    waiters.expect_one_at_a_time();
}

// A console that listens to all channels is no waiter, but counts as one that hears: it makes the dead be
// heard.
TEST_F(Contenders, AListenerToAllChannelsHidesThatWaitersAreDead) {
    auto holder = world.lock(fair());
    ASSERT_THAT(holder.acquire(), Succeeds());
    auto console = world[0].connect();
    console.send({"PSUBSCRIBE", "*"});
    (void)console.read_reply();
    Waiters waiters{world[0], world.uris(), 3};
    waiters[0].kill();
    const auto released = now();
    EXPECT_THAT(holder.release(), Succeeds());
    expect_delay("first waiter killed, PSUBSCRIBE *", waiters.first_held_at(1) - released,
                 reservation_ttl() + 2 * poll_interval);
}

}  // namespace
}  // namespace redlock::test::fair_contenders_live_test
