// The quarantine in the scripts: the check at the beginning of every script that gives a vote.
#include "scripts_fixture.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace redlock::test::quarantine_test {
namespace {

using Vote = std::string (*)(Scripts&);

class Quarantine : public Scripts, public testing::WithParamInterface<std::pair<const char*, Vote>> {
protected:
    Quarantine() { quarantine = 10s; }

    /// The script's keys have our owner or are free, so it returns 1 or a count if it may vote.
    std::string vote() {
        for (const auto* const key : {"a", "count:a"}) redis.keys().erase(key);
        const bool acquires = std::string_view{GetParam().first}.starts_with("Set");
        if (!acquires) hold("a", me);
        if (!acquires) hold("count:a", "7");
        const auto answer = GetParam().second(*this);
        if (answer != "1" && !answer.starts_with("17")) {
            EXPECT_EQ(value("a"), acquires ? "(nil)" : me) << "without a vote it does nothing";
            EXPECT_EQ(value("count:a"), acquires ? "(nil)" : "7");
            EXPECT_TRUE(acquires || ttl("a") == 10s);
            return answer;
        }
        return "yes";
    }
    void mark(microseconds since, milliseconds ttl = 24h * 28) {
        hold("marker", std::to_string(since.count()), ttl);
    }
};

INSTANTIATE_TEST_SUITE_P(
    Scripts, Quarantine,
    testing::Values(
        std::pair<const char*, Vote>{"SetAll", [](Scripts& it) { return it.acquire({"a"}, 20s); }},
        std::pair<const char*, Vote>{"SetAndCount",
                                     [](Scripts& it) { return it.acquire_and_count({"a"}, 20s); }},
        std::pair<const char*, Vote>{"ExpireAll", [](Scripts& it) { return it.extend({"a"}, 20s); }},
        std::pair<const char*, Vote>{"RaiseCount", [](Scripts& it) { return it.raise_counts({"a"}, 9); }}),
    [](const auto& info) { return std::string{info.param.first}; });

// The quarantine begins with the first command. Its last instant belongs to it.
TEST_P(Quarantine, BeginsWithTheFirstCommand) {
    EXPECT_EQ(vote(), "QUARANTINED for another 10000 ms");
    EXPECT_EQ(value("marker"), "1760000000123456");
    EXPECT_EQ(ttl("marker"), 24h * 28);
    now += 4s;
    EXPECT_EQ(vote(), "QUARANTINED for another 6000 ms");
    EXPECT_EQ(value("marker"), "1760000000123456") << "it begins once";
    now += 6s - 1us;
    EXPECT_THAT(vote(), StartsWith("QUARANTINED"));
    now += 1us;
    EXPECT_EQ(vote(), "yes");
}

TEST_P(Quarantine, BeginsAgainIfTheMarkerIsMissing) {
    mark(now - 1h);
    EXPECT_EQ(vote(), "yes");
    redis.keys().erase("marker");
    EXPECT_THAT(vote(), StartsWith("QUARANTINED"));
}

// The marker of another run comes from an old file. The marker of an earlier time as a master comes by
// replication and back.
TEST_P(Quarantine, BeginsAgainIfTheMarkerIsOfOtherData) {
    mark(now - 1h);
    redis.promote(redis.keys());
    EXPECT_THAT(vote(), StartsWith("QUARANTINED"));
    mark(now - 1h);
    redis.restart("another run", redis.keys());
    EXPECT_EQ(vote(), "QUARANTINED for another 10000 ms");
    EXPECT_EQ(value("marker"), "1760000000123456");
}

// A replica has no vote although it has its master's data and accepts writes.
TEST_P(Quarantine, AReplicaHasNoVote) {
    mark(now - 1h);
    redis.demote();
    EXPECT_THAT(vote(), StartsWith("(error) READONLY"));
}

TEST_P(Quarantine, IsLongerIfTheClockWasSetBack) {
    mark(now + 1h);
    EXPECT_EQ(vote(), "QUARANTINED for another 3610000 ms");
    EXPECT_EQ(value("marker"), std::to_string((now + 1h).count()));
}

// A lock may have the same name as the marker, or another program may have created the key.
TEST_P(Quarantine, DoesNotOverwriteAForeignKey) {
    for (const std::string foreign : {"x", "4e0f60557466e358c3ef0160d3ef7ce682a8b4c6", "web:17:1760000000"}) {
        EXPECT_EQ(ask({"SET", "marker", foreign}), "OK");
        EXPECT_THAT(vote(), StartsWith("(error) WRONGTYPE"));
        EXPECT_EQ(ask({"GET", "marker"}), foreign);
    }
    redis.keys().erase("marker");
    ask({"RPUSH", "marker", "x"});
    EXPECT_EQ(vote(), "(error) WRONGTYPE marker holds no marker");
}

// From half of its time on, the marker's expiry is renewed, so that it does not expire while it is used.
TEST_P(Quarantine, RenewsTheMarkerWhileItIsUsed) {
    mark(now - 1h, 24h * 14);
    EXPECT_EQ(vote(), "yes");
    EXPECT_EQ(ttl("marker"), 24h * 14);
    mark(now - 1h, 24h * 14 - 1ms);
    EXPECT_EQ(vote(), "yes");
    EXPECT_EQ(ttl("marker"), 24h * 28);
    EXPECT_EQ(value("marker"), std::to_string((now - 1h).count()));
}

// However long the quarantine is, its marker lives twice as long.
TEST_P(Quarantine, KeepsTheMarkerForTwiceItsLength) {
    quarantine = 24h * 30;
    EXPECT_THAT(vote(), StartsWith("QUARANTINED"));
    EXPECT_EQ(ttl("marker"), 24h * 60);
}

TEST_P(Quarantine, MayBeZero) {
    quarantine = 0us;
    EXPECT_EQ(vote(), "yes");
    EXPECT_EQ(value("marker"), "(nil)");
}

// The marker is the last key, whatever the number of resources.
TEST_F(Scripts, FindTheMarkerBehindAnyNumberOfResources) {
    quarantine = 10s;
    hold("marker", std::to_string((now - 1h).count()), 24h * 28);
    EXPECT_EQ(acquire_and_count({"a", "b", "c"}), "1760000000123456");
    EXPECT_EQ(raise_counts({"a", "b", "c"}, 1'760'000'000'200'000), "1");
    EXPECT_EQ(extend({"a", "b", "c"}, 20s), "1");
    EXPECT_EQ(release_all({"a", "b", "c"}), "1");
    EXPECT_EQ(acquire({"a", "b", "c"}), "1");
    EXPECT_EQ(value("marker"), std::to_string((now - 1h).count()));
    EXPECT_EQ(redis.keys().size(), 7U);
}

}  // namespace
}  // namespace redlock::test::quarantine_test
