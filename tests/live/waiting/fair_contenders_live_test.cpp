// LockOptions::fair beside those that know of no queue: locks without it, and clients in other languages.
// They wake nobody and do not wait for their turn; exclusion is the same for all.
#include "waiting_world.hpp"

#include <atomic>
#include <thread>

#include "wire/scripts.hpp"

namespace redlock::test {
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

// Waiters know when it expires.
TEST_F(Contenders, TheExpiryOfAForeignKeyIsNoticed) {
    set_on_all(2s);
    const auto set = now();
    Waiters waiters{world[0], world.uris(), 3};
    const auto first = waiters.first_held_at();
    EXPECT_GE(first, set + 1900ms);
    expect_delay("foreign key expired: the first", first - set - 2s, first_asks_every());
    waiters.expect_one_at_a_time();
}

// A key without an expiry tells no time.
TEST_F(Contenders, AKeyWithoutAnExpiryIsWaitedFor) {
    for (auto& server : world) ASSERT_EQ(server.command({"SET", the_resource, "by hand"}), "OK");
    auto lock = world.lock(fair());
    const auto result = lock.acquire_for(400ms);
    ASSERT_THAT(result, FailsWith(Errc::held_by_other));
    ASSERT_TRUE(result.place());
    EXPECT_LT(result.place()->held_for, 0ms);
    EXPECT_EQ(result.place()->held, QueuePlace::Held::by_holder);
    WaitingProcess waiter{world.uris()};
    ASSERT_TRUE(queued(world[0], 1));
    const auto deleted = now();
    for (auto& server : world) ASSERT_EQ(server.command({"DEL", the_resource}), "1");
    expect_delay("key by hand deleted", waiter.held_at() - deleted, first_asks_every() + poll_interval);
}

// What is reserved keeps a plain lock from that node, and from no other.
TEST_F(Contenders, AReservationIsNoVote) {
    ASSERT_EQ(world[0].command({"SET", the_resource, "redlock:wake:0|1", "PX", "60000"}), "OK");
    auto plain = world.lock(no_retry());
    const auto result = plain.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_EQ(world.keys_of(plain.owner()), 4U);
}

// Nor does the next in the queue take what is reserved for one that was just woken.
// The waiter may just be making an attempt when the resource is reserved, so it may come early once.
TEST_F(Contenders, AReservationIsLeftToItsWaiter) {
    const SchedulingDelayMonitor monitor;
    int early = 0;
    for (int i = 0; i < 4; ++i) {
        set_on_all();
        WaitingProcess waiter{world.uris()};
        ASSERT_TRUE(queued(world[0], 1));
        boot_clock().sleep_until(now() + 2 * poll_interval, {});
        ASSERT_EQ(world[0].command({"SET", the_resource, "redlock:wake:0|1", "PX", "20000"}), "OK");
        const auto reserved = now();
        for (std::size_t node = 1; node < 5; ++node) (void)world[node].command({"DEL", the_resource});
        // Two poll intervals after it has seen a holder last, which was a poll interval ago at most.
        const auto waited = waiter.held_at() - reserved;
        early += waited >= poll_interval * 9 / 10 ? 0 : 1;
        (void)waiter.released_at();
        (void)world[0].command({"DEL", the_resource});
    }
    EXPECT_TRUE(early <= 1 || monitor.delay() > 20ms) << early;
}

// Fair and plain locks of several threads, each of which gets its share, one at a time.
TEST_F(Contenders, FairAndPlainLocksExcludeEachOther) {
    std::atomic<int> holders{0}, overlaps{0};
    std::array<std::atomic<int>, 6> holds{};
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < holds.size(); ++thread)
        threads.emplace_back([&, thread](const std::stop_token& stop) {
            const LockOptions options{.ttl = 30s, .retry = {.delay = 20ms}, .fair = thread % 2 == 0};
            while (!stop.stop_requested()) {
                auto lock = world.lock(options);
                if (!lock.acquire_for(20s, stop)) continue;
                overlaps += holders.exchange(1);
                boot_clock().sleep_until(now() + 1ms, {});
                holders = 0;
                ++holds[thread];
                (void)lock.release();
            }
        });
    EXPECT_TRUE(wait_until([&] { return std::ranges::all_of(holds, [](auto& it) { return it > 4; }); }));
    threads.clear();
    EXPECT_EQ(overlaps, 0);
    EXPECT_TRUE(wait_until([&] { return world.clean(); })) << "a stray key, or a queue";
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
}  // namespace redlock::test
