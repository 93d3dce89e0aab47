// Every branch of the scripts in src/wire/lua, executed by Lua on a Redis in memory.
#include "scripts_fixture.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>

namespace redlock::test::scripts_test {
namespace {

// D6. EVALSHA uses the digest that SCRIPT LOAD returns.
TEST_F(Scripts, HaveTheSha1OfTheServer) {
    for (const auto* const script : detail::scripts::all)
        EXPECT_EQ(ask({"SCRIPT", "LOAD", std::string{script->text}}), script->sha1);
}

// ---- One resource

using CompareAndDelete = Scripts;

// S8. A plain DEL by a client that was delayed would remove the lock of the next holder.
TEST_F(CompareAndDelete, DeletesOnlyItsOwnKey) {
    hold("a", me);
    hold("b", "you");
    EXPECT_EQ(run(detail::scripts::compare_and_delete, {"a"}, {me}), "1");
    EXPECT_EQ(run(detail::scripts::compare_and_delete, {"b"}, {me}), "0");
    EXPECT_EQ(run(detail::scripts::compare_and_delete, {"c"}, {me}), "0");
    EXPECT_EQ(value("a"), "(nil)");
    EXPECT_EQ(value("b"), "you");
}

using CompareAndExpire = Scripts;

TEST_F(CompareAndExpire, LengthensOnlyItsOwnKey) {
    hold("a", me, 5s);
    hold("b", "you", 5s);
    EXPECT_EQ(run(detail::scripts::compare_and_expire, {"a"}, {me, "7000"}), "1");
    EXPECT_EQ(run(detail::scripts::compare_and_expire, {"b"}, {me, "7000"}), "0");
    EXPECT_EQ(run(detail::scripts::compare_and_expire, {"c"}, {me, "7000"}), "0");
    EXPECT_EQ(ttl("a"), 7s);
    EXPECT_EQ(ttl("b"), 5s);
    EXPECT_EQ(value("c"), "(nil)");
}

TEST_F(CompareAndExpire, NeverShortensAKey) {
    hold("a", me, 5s);
    EXPECT_EQ(run(detail::scripts::compare_and_expire, {"a"}, {me, "4999"}), "1");
    EXPECT_EQ(ttl("a"), 5s);
}

// ---- Several resources

using DeleteAll = Scripts;

TEST_F(DeleteAll, DeletesAllKeys) {
    for (const auto* const key : {"a", "b", "c"}) hold(key, me);
    EXPECT_EQ(release_all({"a", "b", "c"}), "1");
    EXPECT_TRUE(redis.keys().empty());
}

// The script deletes our keys wherever they are in the list, keeps the others, and reports them.
TEST_F(DeleteAll, DeletesOnlyItsOwnKeys) {
    for (const std::string foreign : {"a", "b", "c"}) {
        for (const auto* const key : {"a", "b", "c"}) hold(key, foreign == key ? "you" : me);
        EXPECT_EQ(release_all({"a", "b", "c"}), "0");
        EXPECT_EQ(redis.keys().size(), 1U);
        EXPECT_EQ(value(foreign), "you");
    }
}

TEST_F(DeleteAll, DeletesItsOwnKeysBesideAKeyOfAnotherType) {
    for (const std::string foreign : {"a", "b", "c"}) {
        redis.keys().clear();
        for (const std::string key : {"a", "b", "c"})
            key == foreign ? (void)ask({"RPUSH", key, "x"}) : hold(key, me);
        EXPECT_EQ(release_all({"a", "b", "c"}), "(error) WRONGTYPE " + foreign + " holds no lock");
        EXPECT_EQ(redis.keys().size(), 1U);
        EXPECT_EQ(ask({"TYPE", foreign}), "list");
    }
}

TEST_F(DeleteAll, ReportsAMissingKey) {
    for (const std::string missing : {"a", "b"}) {
        hold(missing == "a" ? "b" : "a", me);
        EXPECT_EQ(release_all({"a", "b"}), "0");
        EXPECT_TRUE(redis.keys().empty());
    }
    EXPECT_EQ(release_all({"a", "b"}), "0");
}

using ReleaseWithinMinHold = Scripts;

TEST_F(ReleaseWithinMinHold, ReplacesOnlyItsOwnKeys) {
    for (const auto* const key : {"a", "c"}) hold(key, me, 60s);
    hold("b", "you", 5s);
    EXPECT_EQ(hold_remaining({"a", "c"}, 7s), "1");
    hold("a", me, 5s);
    EXPECT_EQ(hold_remaining({"a", "b", "d"}, 7s), "0");
    for (const auto* const key : {"a", "c"}) {
        EXPECT_EQ(value(key), "redlock:min-hold");
        EXPECT_EQ(ttl(key), 7s);
    }
    EXPECT_THAT(value_and_ttl("b"), Pair("you", 5s));
    EXPECT_EQ(value("d"), "(nil)");
}

TEST_F(ReleaseWithinMinHold, ReplacesItsOwnKeysBesideAKeyOfAnotherType) {
    hold("b", me, 60s);
    ask({"RPUSH", "a", "x"});
    EXPECT_EQ(hold_remaining({"a", "b"}, 7s), "(error) WRONGTYPE a holds no lock");
    EXPECT_THAT(value_and_ttl("b"), Pair("redlock:min-hold", 7s));
}

// A script may use SET although the server has reached maxmemory, if it has written before.
TEST_F(ReleaseWithinMinHold, NeedsNoMemory) {
    for (const auto* const key : {"a", "c"}) hold(key, me, 60s);
    redis.run_out_of_memory();
    EXPECT_EQ(hold_remaining({"a", "c"}, 7s), "1");
    for (const auto* const key : {"a", "c"}) {
        EXPECT_EQ(value(key), "redlock:min-hold");
        EXPECT_EQ(ttl(key), 7s);
    }
}

using SetAll = Scripts;

TEST_F(SetAll, SetsAllKeysWithTheTtl) {
    EXPECT_EQ(acquire({"a", "b", "c"}, 7s), "1");
    for (const auto* const key : {"a", "b", "c"}) {
        EXPECT_EQ(value(key), me);
        EXPECT_EQ(ttl(key), 7s);
    }
    EXPECT_EQ(redis.keys().size(), 3U);
}

TEST_F(SetAll, SetsNoKeyIfOneIsHeld) {
    for (const std::string held : {"a", "b", "c"})
        for (const std::string owner : {"you", "me"}) {
            redis.keys().clear();
            hold(held, owner, 5s);
            EXPECT_EQ(acquire({"a", "b", "c"}), "0") << held;
            EXPECT_EQ(redis.keys().size(), 1U);
            EXPECT_EQ(ttl(held), 5s);
        }
}

TEST_F(SetAll, TreatsAKeyOfAnotherTypeAsHeld) {
    ask({"RPUSH", "b", "x"});
    EXPECT_EQ(acquire({"a", "b"}), "0");
    EXPECT_EQ(redis.keys().size(), 1U);
}

using ExpireAll = Scripts;

TEST_F(ExpireAll, LengthensEachKey) {
    hold("a", me, 20s);
    hold("b", me, 9'999ms);
    hold("c", me, 5s);
    EXPECT_EQ(extend({"a", "b", "c"}, 10s), "1");
    EXPECT_EQ(ttl("a"), 20s) << "never shortened";
    EXPECT_EQ(ttl("b"), 10s);
    EXPECT_EQ(ttl("c"), 10s);
}

TEST_F(ExpireAll, LengthensNoKeyIfOneIsNotItsOwn) {
    for (const std::string odd : {"a", "b", "c"})
        for (const bool missing : {true, false}) {
            redis.keys().clear();
            for (const auto* const key : {"a", "b", "c"})
                if (odd != key)
                    hold(key, me, 5s);
                else if (!missing)
                    hold(key, "you", 5s);
            EXPECT_EQ(extend({"a", "b", "c"}), "0") << odd;
            for (const auto& [key, entry] : redis.keys()) EXPECT_EQ(ttl(key), 5s) << odd;
            EXPECT_EQ(redis.keys().size(), missing ? 2U : 3U) << "and makes none";
        }
}

TEST_F(ExpireAll, ReportsAWrongType) {
    hold("a", me, 5s);
    ask({"RPUSH", "b", "x"});
    EXPECT_THAT(extend({"a", "b"}), StartsWith("(error) WRONGTYPE"));
    EXPECT_EQ(ttl("a"), 5s);
}

// ---- Counting

using SetAndCount = Scripts;

TEST_F(SetAndCount, BeginsANewCounterWithTheTime) {
    EXPECT_EQ(acquire_and_count({"a", "b"}, 7s), "1760000000123456");
    for (const auto* const key : {"a", "b"}) {
        EXPECT_EQ(value(key), me);
        EXPECT_EQ(ttl(key), 7s);
        EXPECT_EQ(value(std::string{"count:"} + key), "1760000000123456");
        EXPECT_EQ(ttl(std::string{"count:"} + key), keep);
    }
}

TEST_F(SetAndCount, IncrementsTheCounterAndRenewsItsExpiry) {
    hold("count:a", "41", 5s);
    EXPECT_EQ(acquire_and_count({"a"}), "42");
    EXPECT_THAT(value_and_ttl("count:a"), Pair("42", keep));
}

// All counters are set to the largest one plus one, wherever that is in the list.
TEST_F(SetAndCount, SetsSeveralCountersToTheSameCount) {
    for (const std::string larger : {"a", "b", "c"}) {
        redis.keys().clear();
        for (const std::string key : {"a", "b", "c"}) hold("count:" + key, key == larger ? "41" : "7");
        EXPECT_EQ(acquire_and_count({"a", "b", "c"}), "42");
        for (const std::string key : {"a", "b", "c"}) EXPECT_EQ(value("count:" + key), "42");
    }
}

TEST_F(SetAndCount, BeginsAMissingCounterBesideAnExistingOne) {
    for (const std::string counted : {"a", "b"}) {
        redis.keys().clear();
        hold("count:" + counted, "41");
        EXPECT_EQ(acquire_and_count({"a", "b"}), "1760000000123456") << "the larger";
        redis.keys().clear();
        hold("count:" + counted, "1760000000200000");
        EXPECT_EQ(acquire_and_count({"a", "b"}), "1760000000200001");
        for (const std::string key : {"a", "b"}) EXPECT_EQ(value("count:" + key), "1760000000200001");
    }
}

TEST_F(SetAndCount, CountsNothingIfOneResourceIsHeld) {
    for (const std::string held : {"a", "b"}) {
        redis.keys().clear();
        hold(held, "you", 5s);
        hold("count:a", "41", 5s);
        EXPECT_EQ(acquire_and_count({"a", "b"}), "0");
        EXPECT_EQ(redis.keys().size(), 2U);
        EXPECT_THAT(value_and_ttl("count:a"), Pair("41", 5s));
    }
}

TEST_F(SetAndCount, RejectsAnInvalidCounter) {
    for (const std::string counter : {"count:a", "count:b"})
        for (const std::string garbage :
             {"x", "", "-1", "9000000000000000", "9223372036854775807", "nan", "inf"}) {
            redis.keys().clear();
            hold(counter, garbage);
            EXPECT_EQ(acquire_and_count({"a", "b"}), "(error) WRONGTYPE " + counter + " holds no count")
                << garbage;
            EXPECT_EQ(redis.keys().size(), 1U) << "nothing is set";
        }
    for (const std::string counter : {"count:a", "count:b"}) {
        redis.keys().clear();
        ask({"RPUSH", counter, "x"});
        EXPECT_EQ(acquire_and_count({"a", "b"}), "(error) WRONGTYPE " + counter + " holds no count");
    }
}

// A counter of another dataset may lack the last holders: of another run, or of an earlier time as a master.
TEST_F(SetAndCount, BeginsAgainIfTheCounterIsOfOtherData) {
    for (const bool promoted : {true, false}) {
        hold("count:a", "41");
        if (promoted)
            redis.promote(redis.keys());
        else
            redis.restart("another run", redis.keys());
        hold("a", me);
        EXPECT_EQ(raise_counts({"a"}, 99), "0");
        redis.keys().erase("a");
        EXPECT_EQ(acquire_and_count({"a"}), "1760000000123456");
        EXPECT_EQ(value("count:a"), "1760000000123456");
        redis.keys().clear();
    }
}

// A value that is no counter must not be overwritten.
TEST_F(SetAndCount, DoesNotOverwriteAForeignKey) {
    for (const std::string stranger : {"41", "x:41", "run:x", ":x:41"}) {
        ask({"SET", "count:a", stranger});
        EXPECT_EQ(acquire_and_count({"a"}), "(error) WRONGTYPE count:a holds no count");
        EXPECT_EQ(value("count:a"), stranger);
    }
}

TEST_F(SetAndCount, CountsUpToTheLimit) {
    hold("count:a", "8999999999999999");
    EXPECT_EQ(acquire_and_count({"a"}), "9000000000000000");
    EXPECT_EQ(value("count:a"), "9000000000000000");
}

struct RaiseCount : Scripts {
    RaiseCount() {
        for (const auto* const key : {"a", "b", "c"}) {
            hold(key, me);
            hold(std::string{"count:"} + key, "7", 5s);
        }
    }
    void expect_counts(const std::string& a, const std::string& b, const std::string& c) {
        EXPECT_EQ(value("count:a"), a);
        EXPECT_EQ(value("count:b"), b);
        EXPECT_EQ(value("count:c"), c);
    }
};

TEST_F(RaiseCount, RaisesSmallerCounts) {
    hold("count:b", "1760000000000001", 5s);
    EXPECT_EQ(raise_counts({"a", "b", "c"}, 1'760'000'000'000'000), "1");
    expect_counts("1760000000000000", "1760000000000001", "1760000000000000");
    EXPECT_EQ(ttl("count:a"), keep);
    EXPECT_EQ(ttl("count:b"), 5s);
    EXPECT_EQ(ttl("count:c"), keep);
    EXPECT_EQ(ttl("a"), 10s) << "the key of the resource does not change";
}

TEST_F(RaiseCount, DoesNotChangeAnEqualCount) {
    EXPECT_EQ(raise_counts({"a"}, 7), "1");
    EXPECT_EQ(ttl("count:a"), 5s);
}

TEST_F(RaiseCount, RequiresEachKey) {
    for (const std::string odd : {"a", "b", "c"})
        for (const std::string owner : {"you", ""}) {
            for (const auto* const key : {"a", "b", "c"}) hold(key, me);
            owner.empty() ? (void)redis.keys().erase(odd) : hold(odd, owner);
            EXPECT_EQ(raise_counts({"a", "b", "c"}, 9), "0") << odd;
            expect_counts("7", "7", "7");
        }
}

// The next grant sets a missing counter to a new seed.
TEST_F(RaiseCount, DoesNotCreateACounter) {
    for (const std::string missing : {"a", "b", "c"}) {
        for (const std::string key : {"a", "b", "c"}) hold("count:" + key, "7");
        redis.keys().erase("count:" + missing);
        EXPECT_EQ(raise_counts({"a", "b", "c"}, 9), "0") << missing;
        for (const std::string key : {"a", "b", "c"})
            EXPECT_EQ(value("count:" + key), key == missing ? "(nil)" : "7");
    }
}

// A counter may be ahead of the clock by the time for which counters are kept, because a later seed is still
// larger then. Beyond that, the script returns minus the largest of its own counters.
TEST_F(RaiseCount, DoesNotRaiseFarAheadOfTheClock) {
    hold("count:b", "8", 5s);
    const auto most = (now + keep).count();
    for (const auto fence : {most + 1, std::int64_t{8'900'000'000'000'000}, INT64_MAX}) {
        EXPECT_EQ(raise_counts({"a", "b", "c"}, fence), "-8") << fence;
        expect_counts("7", "8", "7");
        EXPECT_EQ(ttl("count:a"), 5s);
    }
    EXPECT_EQ(raise_counts({"a", "b", "c"}, most), "1");
    expect_counts(std::to_string(most), std::to_string(most), std::to_string(most));
}

TEST_F(RaiseCount, ReportsNoCountIfAKeyIsMissing) {
    hold("b", "you");
    EXPECT_EQ(raise_counts({"a", "b"}, INT64_MAX), "0");
    redis.keys().erase("count:a");
    EXPECT_EQ(raise_counts({"a"}, INT64_MAX), "0");
}

TEST_F(RaiseCount, FailsIfACounterIsInvalid) {
    for (const std::string counter : {"count:a", "count:b"}) {
        for (const std::string key : {"a", "b"}) hold("count:" + key, "7");
        hold(counter, "x");
        EXPECT_EQ(raise_counts({"a", "b"}, 9), "0");
        EXPECT_EQ(value(counter), "x");
        redis.keys().erase(counter);
        ask({"RPUSH", counter, "x"});
        EXPECT_THAT(raise_counts({"a", "b"}, 9), StartsWith("(error) WRONGTYPE"));
        redis.keys().erase(counter);
    }
}

}  // namespace
}  // namespace redlock::test::scripts_test
