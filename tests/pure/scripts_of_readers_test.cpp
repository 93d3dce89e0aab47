// Every branch of the scripts of readers, executed by Lua on a Redis in memory.
#include "scripts_fixture.hpp"
#include "world.hpp"

#include <string>

namespace redlock::test::scripts_of_readers_test {
namespace {

/// Readers of the resource a. Their owners are names padded to 40 characters.
struct Readers : Scripts {
    static std::string owner(std::string name) {
        name.resize(40, '0');
        return name;
    }
    std::string share(const std::string& name, milliseconds ttl = 10s) {
        return run(detail::scripts::reader_acquire, keys({"a", "readers"}),
                   arguments(owner(name), ttl.count(), ""));
    }
    std::string share_and_count(const std::string& name, milliseconds ttl = 10s) {
        return run(detail::scripts::reader_acquire, keys({"a", "readers", "count:a"}),
                   arguments(owner(name), ttl.count(), counter_expiry()));
    }
    std::string stay(const std::string& name, milliseconds ttl = 10s) {
        return run(detail::scripts::reader_extend, keys({"a", "readers"}),
                   {owner(name), "1", std::to_string(ttl.count()), quarantine_text()});
    }
    std::string raise(const std::string& name, std::int64_t fence) {
        return run(detail::scripts::reader_raise_counts, keys({"a", "readers", "count:a"}),
                   arguments(owner(name), fence, counter_expiry()));
    }
    std::string leave(const std::string& name) {
        return run(detail::scripts::reader_release, {"a", "readers"}, {owner(name)});
    }

    Words keys(const Words& names) const { return with_marker(names); }
    Words arguments(const std::string& owner, std::int64_t amount, const std::string& expiry) const {
        return {owner, "1", std::to_string(amount), expiry, quarantine_text()};
    }
    void pass(milliseconds span) { now += span; }
    std::string readers() { return ask({"ZRANGE", "readers", "0", "-1"}); }
    const std::string marker{detail::shared_marker};
};

// ---- Together

TEST_F(Readers, CanHoldAResourceTogether) {
    EXPECT_EQ(share("A", 10s), "1");
    EXPECT_EQ(share("B", 5s), "1");
    EXPECT_THAT(value_and_ttl("a"), Pair(marker, 10s))
        << "the ttl of the reader that expires last, not of the newest reader";
    EXPECT_EQ(ttl("readers"), 10s);
}

TEST_F(Readers, AreExcludedByAnOrdinaryLock) {
    hold("a", "you", 5s);
    EXPECT_EQ(share("A"), "0");
    EXPECT_EQ(share_and_count("A"), "0");
    EXPECT_THAT(value_and_ttl("a"), Pair("you", 5s));
    EXPECT_EQ(redis.keys().size(), 1U);
}

TEST_F(Readers, TreatAKeyOfAnotherTypeAsHeld) {
    ask({"RPUSH", "a", "x"});
    EXPECT_EQ(share("A"), "0");
    EXPECT_EQ(redis.keys().size(), 1U);
}

TEST_F(Readers, ExcludeAnOrdinaryLock) {
    share("A");
    EXPECT_EQ(acquire({"a"}), "0");
    EXPECT_EQ(ask({"SET", "a", "you", "NX", "PX", "1000"}), "(nil)");
    EXPECT_EQ(run(detail::scripts::compare_and_delete, {"a"}, {me}), "0");
    EXPECT_EQ(run(detail::scripts::compare_and_expire, {"a"}, {me, "20000"}), "0");
    EXPECT_EQ(ttl("a"), 10s);
}

TEST_F(Readers, FailIfTheirSetHasAnotherType) {
    ask({"RPUSH", "readers", "x"});
    EXPECT_THAT(share("A"), HasSubstr("WRONGTYPE"));
    EXPECT_EQ(value("a"), "(nil)") << "the key would belong to no reader";
}

// An application may have a sorted set of this name.
TEST_F(Readers, DoNotChangeASortedSetOfAnApplication) {
    share("A");
    leave("A");
    ask({"ZADD", "readers", "1", "user:17"});
    for (const auto& answer : {share("A"), share_and_count("A"), stay("A"), raise("A", 9), leave("A")})
        EXPECT_THAT(answer, HasSubstr("WRONGTYPE"));
    EXPECT_EQ(readers(), "user:17");
    EXPECT_EQ(ttl("readers"), -1ms);
    EXPECT_EQ(value("a"), "(nil)");
}

// ---- Their ends

TEST_F(Readers, ExpireOneByOne) {
    share("A", 5s);
    share("B", 10s);
    pass(5'001ms);
    EXPECT_EQ(value("a"), marker);
    EXPECT_EQ(stay("A"), "0") << "its time is over";
    EXPECT_EQ(stay("B", 2s), "1");
    EXPECT_EQ(ttl("a"), 4'999ms) << "never shortened";
    pass(5s);
    EXPECT_EQ(value("a"), "(nil)");
    EXPECT_EQ(ttl("readers"), -2ms);
}

TEST_F(Readers, LastUntilTheEndOfTheirLastMillisecond) {
    share("A", 5s);
    pass(5s);
    EXPECT_EQ(stay("A", 1s), "1");
    pass(1'001ms);
    EXPECT_EQ(stay("A", 1s), "0");
}

// Expired readers are removed from the set.
TEST_F(Readers, AreRemovedAfterTheyExpired) {
    for (int i = 0; i < 500; ++i) share("dead" + std::to_string(i), 1s);
    share("A", 10s);
    pass(1'001ms);
    share("B", 10s);
    EXPECT_EQ(readers(), owner("A") + "\n" + owner("B"));
}

TEST_F(Readers, ExtendOnlyTheirOwnTime) {
    share("A", 5s);
    share("B", 5s);
    EXPECT_EQ(stay("A", 20s), "1");
    EXPECT_EQ(ttl("a"), 20s);
    pass(5'001ms);
    EXPECT_EQ(stay("B"), "0");
    EXPECT_EQ(readers(), owner("A"));
}

TEST_F(Readers, CannotExtendAfterTheyExpired) {
    EXPECT_EQ(stay("A"), "0");
    EXPECT_TRUE(redis.keys().empty());
    share("A");
    ask({"DEL", "a"});
    EXPECT_EQ(stay("A"), "0");
    EXPECT_EQ(value("a"), "(nil)") << "another client may have held it since";
    hold("a", "you", 5s);
    EXPECT_EQ(stay("A", 20s), "0");
    EXPECT_EQ(ttl("a"), 5s);
}

// ---- Leaving

TEST_F(Readers, AreReleasedOneByOne) {
    share("A", 10s);
    share("B", 5s);
    EXPECT_EQ(leave("A"), "1");
    EXPECT_THAT(value_and_ttl("a"), Pair(marker, 5s)) << "the ttl of the remaining readers";
    EXPECT_EQ(leave("A"), "0");
    EXPECT_EQ(leave("B"), "1");
    EXPECT_TRUE(redis.keys().empty());
}

TEST_F(Readers, DoNotReleaseAnOrdinaryLock) {
    hold("a", "you", 5s);
    EXPECT_EQ(leave("A"), "0");
    EXPECT_EQ(value("a"), "you");
    ask({"DEL", "a"});
    share("A", 20s);
    share("B", 20s);
    hold("a", "you", 5s);  // somebody deleted the readers' key, and another client locked
    EXPECT_EQ(leave("A"), "1");
    EXPECT_EQ(ttl("a"), 5s);
    EXPECT_EQ(leave("B"), "1");
    EXPECT_EQ(value("a"), "you");
}

// ---- Counts

TEST_F(Readers, AreCountedLikeWriters) {
    hold("count:a", "7");
    EXPECT_EQ(share_and_count("A"), "8");
    EXPECT_EQ(share_and_count("B"), "9");
    EXPECT_EQ(value("a"), marker);
    leave("A");
    leave("B");
    EXPECT_EQ(acquire_and_count({"a"}), "10");
    EXPECT_EQ(share_and_count("A"), "0");
}

TEST_F(Readers, RaiseTheCountOnlyWhileTheyHoldTheResource) {
    hold("count:a", "7");
    share("A");
    EXPECT_EQ(raise("A", 9), "1");
    EXPECT_EQ(value("count:a"), "9");
    EXPECT_EQ(raise("B", 11), "0");
    EXPECT_EQ(raise("A", 8), "1");
    EXPECT_EQ(value("count:a"), "9");
    const auto absurd = now.count() + 2 * std::chrono::microseconds{keep}.count();
    EXPECT_EQ(raise("A", absurd), "-9");
    ask({"DEL", "count:a"});
    EXPECT_EQ(raise("A", 11), "0");
    leave("A");
    EXPECT_EQ(raise("A", 11), "0");
}

TEST_F(Readers, CannotRaiseTheCountAfterTheyExpired) {
    hold("count:a", "7");
    share("A", 5s);
    share("B", 10s);
    pass(5'001ms);
    EXPECT_EQ(raise("A", 9), "0") << "its time is over, although B still holds the resource";
    EXPECT_EQ(value("count:a"), "7");
    EXPECT_EQ(raise("B", 9), "1");
}

TEST_F(Readers, FailIfTheCounterIsInvalid) {
    hold("count:a", "x");
    EXPECT_THAT(share_and_count("A"), HasSubstr("WRONGTYPE"));
    EXPECT_EQ(value("a"), "(nil)");
}

// ---- Quarantine

TEST_F(Readers, GetNoVoteOfANodeInQuarantine) {
    quarantine = 10s;
    share("A");
    EXPECT_THAT(share("A"), StartsWith("QUARANTINED"));
    EXPECT_THAT(share_and_count("A"), StartsWith("QUARANTINED"));
    EXPECT_THAT(stay("A"), StartsWith("QUARANTINED"));
    EXPECT_THAT(raise("A", 1), StartsWith("QUARANTINED"));
    EXPECT_EQ(value("a"), "(nil)");
    pass(10s);
    EXPECT_EQ(share("A"), "1");
    EXPECT_EQ(stay("A"), "1");
    EXPECT_EQ(share_and_count("B"), std::to_string(now.count()));
    EXPECT_EQ(raise("B", now.count() + 1), "1");
}

// ---- Resources whose names look like those of keys beside another resource

// The readers of `x` and those of `{x}` are independent.
TEST(ReadersOfAResourceInBraces, AreIndependentOfReadersOfTheNameInside) {
    World world;
    auto reader = world.held("{x}", {.ttl = 10s, .shared = true});
    auto other = world.held("x", {.ttl = 600s, .shared = true});
    EXPECT_THAT(reader.release(), Succeeds());
    EXPECT_THAT(world.lock("{x}").try_acquire(), Succeeds());
    EXPECT_TRUE(other.valid());
    EXPECT_THAT(other.release(), Succeeds());
    EXPECT_THAT(world.lock("x").try_acquire(), Succeeds());
}

// Earlier versions keep the readers under `{x}:readers`. Each version takes the readers of the other one for
// an exclusive lock.
TEST_F(Readers, OfAResourceInBracesExcludeReadersOfEarlierVersions) {
    const auto older = [&] {
        return run(detail::scripts::reader_acquire, {"{x}", "{x}:readers"},
                   arguments(owner("A"), 10'000, ""));
    };
    const auto newer = [&] {
        return run(detail::scripts::reader_acquire, {"{x}", "{x}:tag-readers"},
                   arguments(owner("B"), 10'000, ""));
    };
    EXPECT_EQ(older(), "1");
    EXPECT_EQ(newer(), "0");
    ask({"FLUSHALL"});
    EXPECT_EQ(newer(), "1");
    EXPECT_EQ(older(), "0");
}

}  // namespace
}  // namespace redlock::test::scripts_of_readers_test
