
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "round/hash_slot.hpp"

namespace redlock::detail::hash_slot_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Optional;

// The numbers are those of CLUSTER KEYSLOT.
TEST(SlotOf, IsTheOneOfRedis) {
    EXPECT_EQ(hash_slot_of("123456789"), 0x31C3);
    EXPECT_EQ(hash_slot_of("foo"), 12182);
    EXPECT_EQ(hash_slot_of("bar"), 5061);
    EXPECT_EQ(hash_slot_of("somekey"), 11058);
    EXPECT_EQ(hash_slot_of("\xff\xfe"), 3374);
}

TEST(SlotOf, DependsOnTheHashTagOnly) {
    EXPECT_EQ(hash_slot_of("{foo}:1"), hash_slot_of("foo"));
    EXPECT_EQ(hash_slot_of("orders:{foo}:2{bar}"), hash_slot_of("foo"));
    EXPECT_EQ(hashed_part("foo{}{bar}"), "foo{}{bar}");
    EXPECT_EQ(hashed_part("foo{{bar}}zap"), "{bar");
    EXPECT_EQ(hashed_part("foo}{bar}"), "bar");
    EXPECT_EQ(hashed_part("{open"), "{open");
}

TEST(Names, KeepTheirKeysTogether) {
    for (const std::string name : {"orders", "orders:{42}", "{x}", "{x}y", "a{b", "a}{b}", "{{x}}"}) {
        EXPECT_TRUE(keeps_keys_together(name));
        for (const auto kind : {KeyKind::queue, KeyKind::description, KeyKind::readers, KeyKind::counter})
            EXPECT_EQ(hash_slot_of(key_of(kind, name).text()), hash_slot_of(name)) << name;
    }
}

TEST(BadNames, AreRefused) {
    for (const std::string name : {"a}b", "{}x", "{}", "}", "a{}b{c}"}) {
        EXPECT_FALSE(keeps_keys_together(name));
        EXPECT_THAT(problem_in_cluster(std::vector{name}), Optional(HasSubstr('"' + name + '"')));
    }
}

TEST(ResourcesInACluster, MustBeInOneSlot) {
    EXPECT_EQ(problem_in_cluster(std::vector<std::string>{"{orders}:1", "{orders}:2"}), std::nullopt);
    EXPECT_EQ(problem_in_cluster(std::vector<std::string>{"orders"}), std::nullopt);
    EXPECT_THAT(problem_in_cluster(std::vector<std::string>{"{a}:1", "{a}:2", "b"}),
                Optional(AllOf(HasSubstr("\"{a}:1\""), HasSubstr("\"b\""), HasSubstr("{orders}:1"))));
}

}  // namespace
}  // namespace redlock::detail::hash_slot_test
