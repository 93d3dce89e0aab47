// The releases of one node that are to be sent again.

#include <gmock/gmock.h>

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "round/kept_releases.hpp"

namespace redlock::detail::kept_releases_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string resource[] = {"r"};

/// Returns the commands of a broken connection: releases with the owners `first`, `first` + 1, and so on.
PendingReplies releases(std::size_t first, std::size_t count = 1) {
    PendingReplies result;
    for (auto i = first; i < first + count; ++i) {
        const auto owner = std::to_string(i);
        result.add({.verb = Verb::compare_and_delete, .resources = resource, .owner = owner}, nullptr);
    }
    return result;
}

/// Sends the releases again, as a group does, and returns their owners. `answers` says whether the server
/// does.
std::vector<std::string> add_repetition(KeptReleases& all, bool answers = true) {
    std::vector<std::string> result;
    all.send_again(answers, {}, [&](const PendingReply& release) { result.push_back(release.owner); });
    return result;
}

TEST(KeptReleases, AreSentInTheirOrder) {
    KeptReleases all;
    EXPECT_TRUE(all.none());
    all.keep(releases(1, 2), true);
    all.keep(releases(3), true);
    EXPECT_FALSE(all.none());
    EXPECT_THROW(all.send_again(true, {}, [](const auto&) { throw std::bad_alloc{}; }), std::bad_alloc);
    EXPECT_THAT(add_repetition(all), ElementsAre("1", "2", "3")) << "sending them has failed";
    EXPECT_TRUE(all.none());
    EXPECT_THAT(add_repetition(all), IsEmpty());
}

TEST(KeptReleases, AConnectionWithoutReleasesLeavesNothingBehind) {
    KeptReleases all;
    PendingReplies pending;
    pending.add({.verb = Verb::set_if_absent, .resources = resource, .owner = "A"}, nullptr);
    all.keep(std::move(pending), true);
    EXPECT_TRUE(all.none());
}

TEST(KeptReleases, AServerThatDoesNotAnswerGetsThemOnlyIfItHadAnswered) {
    KeptReleases all;
    all.keep(releases(1), false);
    EXPECT_THAT(add_repetition(all, false), IsEmpty());
    all.keep(releases(2), true);
    EXPECT_THAT(add_repetition(all, false), ElementsAre("1", "2"));
    all.keep(releases(3), false);
    EXPECT_THAT(add_repetition(all, false), IsEmpty()) << "it has had its attempt";
    EXPECT_THAT(add_repetition(all, true), ElementsAre("3"));
}

TEST(KeptReleases, TheOldestAreDroppedIfThereAreTooMany) {
    KeptReleases all;
    all.keep(releases(0, 10), true);
    all.keep(releases(10, max_kept_releases), true);
    for (std::size_t i = 0; i < 100; ++i) all.keep(releases(5000 + i), true);
    const auto sent = add_repetition(all);
    EXPECT_EQ(sent.size(), max_kept_releases);
    EXPECT_EQ(sent.front(), "110");
    EXPECT_EQ(sent.back(), "5099");
}

TEST(KeptReleases, TheOldestIsDroppedIfTooManyWereRefusedOneByOne) {
    KeptReleases all;
    for (std::size_t i = 0; i <= max_kept_releases; ++i) all.keep(releases(i), false);
    const auto sent = add_repetition(all);
    EXPECT_EQ(sent.size(), max_kept_releases);
    EXPECT_EQ(sent.front(), "1");
}

TEST(KeptReleases, ARepetitionIsNotRepeatedForEver) {
    auto pending = releases(1);
    int repeats = 0;
    for (KeptReleases all; all.keep(std::move(pending), true), !all.none();) {
        pending = {};
        all.send_again(true, {}, [&](const PendingReply& release) { pending.add_repetition(release); });
        ASSERT_LE(++repeats, 100);
    }
    EXPECT_EQ(repeats, max_release_repeats);
}

}  // namespace
}  // namespace redlock::detail::kept_releases_test
