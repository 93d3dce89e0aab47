// The releases that broken connections have left behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "round/repeated_releases.hpp"

namespace redlock::detail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string resource[] = {"r"};

/// Returns the commands of a broken connection: releases with the owners `first`, `first` + 1, and so on.
PendingReplies releases(std::size_t first, std::size_t count = 1) {
    PendingReplies result;
    for (auto i = first; i < first + count; ++i) {
        const auto owner = std::to_string(i);
        result.sent({.verb = Verb::compare_and_delete, .resources = resource, .owner = owner}, nullptr);
    }
    return result;
}

std::vector<std::string> owners(const RepeatedReleases& of) {
    std::vector<std::string> result;
    of.for_each([&](const PendingReply& release) { result.push_back(release.owner); });
    return result;
}

TEST(RepeatedReleases, AreSentInTheirOrder) {
    RepeatedReleases all;
    EXPECT_TRUE(all.none());
    all.keep(releases(1, 2), true);
    all.keep(releases(3), true);
    EXPECT_FALSE(all.none());
    EXPECT_THAT(owners(all), ElementsAre("1", "2", "3"));
    EXPECT_THAT(owners(all), ElementsAre("1", "2", "3")) << "sending them can fail";
    all.clear();
    EXPECT_TRUE(all.none());
    EXPECT_THAT(owners(all), IsEmpty());
}

TEST(RepeatedReleases, AConnectionWithoutReleasesLeavesNothingBehind) {
    RepeatedReleases all;
    PendingReplies pending;
    pending.sent({.verb = Verb::set_if_absent, .resources = resource, .owner = "A"}, nullptr);
    all.keep(std::move(pending), true);
    EXPECT_TRUE(all.none());
}

TEST(RepeatedReleases, ANodeThatIsNotTrustedGetsAConnectionOnlyIfItHadAnswered) {
    RepeatedReleases all;
    all.keep(releases(1), false);
    EXPECT_TRUE(all.may_connect(true));
    EXPECT_FALSE(all.may_connect(false));
    all.keep(releases(2), true);
    EXPECT_TRUE(all.may_connect(false));
}

TEST(RepeatedReleases, TheOldestAreDroppedIfThereAreTooMany) {
    RepeatedReleases all;
    all.keep(releases(0, 10), true);
    all.keep(releases(10, max_repeated_releases), true);
    auto sent = owners(all);
    EXPECT_EQ(sent.size(), max_repeated_releases);
    EXPECT_EQ(sent.front(), "10");
    for (std::size_t i = 0; i < 2 * max_broken_connections; ++i) all.keep(releases(5000 + i), true);
    sent = owners(all);
    EXPECT_EQ(sent.size(), max_repeated_releases);
    EXPECT_EQ(sent.front(), std::to_string(10 + 2 * max_broken_connections));
    EXPECT_EQ(sent.back(), std::to_string(5000 + 2 * max_broken_connections - 1));
}

// The limit of connections is reached, and the last one has as many releases as are sent together.
TEST(RepeatedReleases, TheOldestConnectionIsForgottenIfThereIsNoRoomForAnother) {
    RepeatedReleases all;
    for (std::size_t i = 1; i < max_broken_connections; ++i) all.keep(releases(i), true);
    all.keep(releases(1000, max_repeated_releases), true);
    all.keep(releases(5000), true);
    const auto sent = owners(all);
    EXPECT_EQ(sent.size(), max_repeated_releases);
    EXPECT_EQ(sent.front(), "1001");
    EXPECT_EQ(sent.back(), "5000");
}

TEST(RepeatedReleases, OneOfManyConnectionsThatHadBeenAnsweredPermitsAnAttempt) {
    RepeatedReleases all;
    for (std::size_t i = 0; i < max_broken_connections; ++i) all.keep(releases(i), false);
    EXPECT_FALSE(all.may_connect(false));
    all.keep(releases(5000), true);
    EXPECT_TRUE(all.may_connect(false));
}

TEST(RepeatedReleases, ARepetitionIsNotRepeatedForEver) {
    auto pending = releases(1);
    int repeats = 0;
    for (RepeatedReleases all; all.keep(std::move(pending), true), !all.none(); all.clear()) {
        pending = {};
        all.for_each([&](const PendingReply& release) { pending.sent_again(release); });
        ASSERT_LE(++repeats, 100);
    }
    EXPECT_EQ(repeats, max_release_repeats);
}

}  // namespace
}  // namespace redlock::detail
