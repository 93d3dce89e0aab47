
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "round/cluster_slots.hpp"

namespace redlock::detail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Optional;

// The numbers are those of CLUSTER KEYSLOT.
TEST(SlotOf, IsTheOneOfRedis) {
    EXPECT_EQ(slot_of("123456789"), 0x31C3);
    EXPECT_EQ(slot_of("foo"), 12182);
    EXPECT_EQ(slot_of("bar"), 5061);
    EXPECT_EQ(slot_of("somekey"), 11058);
    EXPECT_EQ(slot_of("\xff\xfe"), 3374);
}

TEST(SlotOf, DependsOnTheHashTagOnly) {
    EXPECT_EQ(slot_of("{foo}:1"), slot_of("foo"));
    EXPECT_EQ(slot_of("orders:{foo}:2{bar}"), slot_of("foo"));
    EXPECT_EQ(hashed_part("foo{}{bar}"), "foo{}{bar}");
    EXPECT_EQ(hashed_part("foo{{bar}}zap"), "{bar");
    EXPECT_EQ(hashed_part("foo}{bar}"), "bar");
    EXPECT_EQ(hashed_part("{open"), "{open");
}

struct Names : testing::TestWithParam<std::string> {};
struct BadNames : testing::TestWithParam<std::string> {};

TEST_P(Names, KeepTheirKeysTogether) {
    EXPECT_TRUE(keeps_keys_together(GetParam()));
    for (const auto kind : {KeyKind::queue, KeyKind::description, KeyKind::readers, KeyKind::counter})
        EXPECT_EQ(slot_of(key_of(kind, GetParam()).text()), slot_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Cluster, Names,
                         testing::Values("orders", "orders:{42}", "{x}", "{x}y", "a{b", "a}{b}", "{{x}}"));

TEST_P(BadNames, AreRefused) {
    EXPECT_FALSE(keeps_keys_together(GetParam()));
    EXPECT_THAT(problem_in_cluster(std::vector{GetParam()}), Optional(HasSubstr('"' + GetParam() + '"')));
}

INSTANTIATE_TEST_SUITE_P(Cluster, BadNames, testing::Values("a}b", "{}x", "{}", "}", "a{}b{c}"));

TEST(ResourcesInACluster, MustBeInOneSlot) {
    EXPECT_EQ(problem_in_cluster(std::vector<std::string>{"{orders}:1", "{orders}:2"}), std::nullopt);
    EXPECT_EQ(problem_in_cluster(std::vector<std::string>{"orders"}), std::nullopt);
    EXPECT_THAT(problem_in_cluster(std::vector<std::string>{"{a}:1", "{a}:2", "b"}),
                Optional(AllOf(HasSubstr("\"{a}:1\""), HasSubstr("\"b\""), HasSubstr("{orders}:1"))));
}

}  // namespace
}  // namespace redlock::detail
