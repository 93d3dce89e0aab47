// When the replies of Sentinels can be trusted (rule D8 for Sentinels).
#include "redis/sentinel_query.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redlock {
namespace {

using Kind = SentinelAnswer::Kind;

SentinelAnswer names(const std::string& master, const std::string& address, const std::string& id) {
    return {.kind = Kind::named, .address = address, .id = id, .master = master};
}
SentinelAnswer is_silent(const std::string& address) {
    return {.address = address};
}
SentinelAnswer refuses(const std::string& address) {
    return {.kind = Kind::refused, .address = address};
}

struct Row {
    const char* name;
    std::vector<SentinelAnswer> answers;
    std::size_t sentinels;
    std::size_t named;
    std::string master;
    bool refused_for_good = false;
};

struct CountSentinels : testing::TestWithParam<Row> {};

const auto s1_a = names("a", "1", "S1");
const auto s1_b = names("b", "1", "S1");
const auto s2_a = names("a", "2", "S2");
const auto s2_b = names("b", "2", "S2");
const auto s3_a = names("a", "3", "S3");

INSTANTIATE_TEST_SUITE_P(
    Table, CountSentinels,
    testing::Values(
        Row{"OneOfOne", {s1_a}, 1, 1, "a"}, Row{"NoneOfOne", {is_silent("1")}, 1, 0, ""},
        Row{"TwoOfThree", {s1_a, s2_a, is_silent("3")}, 3, 2, "a"},
        Row{"ThreeOfThree", {s1_a, s2_a, s3_a}, 3, 3, "a"},
        Row{"OneOfThree", {s1_a, is_silent("2"), is_silent("3")}, 3, 1, ""},
        Row{"TwoOfThreeThatDiffer", {s1_a, s2_b, is_silent("3")}, 3, 2, ""},
        Row{"TwoOfThreeBesideAnother", {s1_b, s2_a, s3_a}, 3, 3, "a"},
        Row{"HalfOfTwo", {s1_a, s2_b}, 2, 2, ""}, Row{"OneOfTwo", {s1_a, is_silent("2")}, 2, 1, ""},
        // The same Sentinel.
        Row{"OneThatIsListedTwiceHasOneVote", {s1_a, s1_a, is_silent("2")}, 2, 1, ""},
        Row{"OneThatIsListedTwiceDoesNotHinderTheOthers", {s1_b, s1_b, s2_a, s3_a}, 3, 3, "a"},
        Row{"OneAlone", {s1_a, s1_a}, 1, 1, "a"},
        Row{"OneAtTwoAddresses", {s1_a, names("a", "2", "S1"), is_silent("3")}, 2, 1, ""},
        Row{"OneAddressWithoutAnId", {names("a", "1", ""), names("a", "1", ""), is_silent("2")}, 2, 1, ""},
        Row{"OneAddressOfWhichOneEntryIsSilent", {s1_a, is_silent("1")}, 1, 1, "a"},
        Row{"OneByWayOfAThird",
            {names("a", "1", ""), names("a", "2", "S1"), names("a", "1", "S1"), is_silent("3")},
            2,
            1,
            ""},
        Row{"OneByWayOfAThirdAmongOthers",
            {names("a", "1", ""), s2_a, names("a", "3", "S1"), names("a", "1", "S1"), is_silent("4")},
            3,
            2,
            "a"},
        Row{"OneThatContradictsItselfHasNoVote", {s1_a, s1_b, s2_a, is_silent("3")}, 3, 2, ""},
        Row{"OneThatContradictsItselfBesideAMajority", {s1_a, s1_b, s2_a, s3_a}, 3, 3, "a"},
        // The identity of these entries is unknown. They count as Sentinels and cannot form a majority.
        Row{"EntriesWithoutAddressAndIdAreSentinelsOfTheirOwn",
            {s1_a, is_silent(""), is_silent("")},
            3,
            1,
            ""},
        // Refusals.
        Row{"OneRefusalOfThree", {s1_a, refuses("2"), is_silent("3")}, 3, 1, ""},
        Row{"OneRefusalBesideAMajority", {s1_a, refuses("2"), s3_a}, 3, 2, "a"},
        Row{"TwoRefusalsOfThree", {s1_a, refuses("2"), refuses("3")}, 3, 1, "", true},
        Row{"ARefusalOfTwo", {is_silent("1"), refuses("2")}, 2, 0, "", true},
        Row{"ARefusalThatIsListedTwice", {s1_a, refuses("2"), refuses("2"), is_silent("3")}, 3, 1, ""}),
    [](const auto& it) { return it.param.name; });

TEST_P(CountSentinels, ReturnsTheCountsOfTheTable) {
    const auto& row = GetParam();
    const auto count = count_sentinels(row.answers);
    EXPECT_EQ(count.sentinels, row.sentinels);
    EXPECT_EQ(count.named, row.named);
    EXPECT_EQ(count.master, row.master);
    EXPECT_EQ(count.refused_for_good, row.refused_for_good);
}

}  // namespace
}  // namespace redlock
