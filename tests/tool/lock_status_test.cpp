// What the keys on the nodes come to, by tables.
#include "tool/lock_status.hpp"

#include <redlock/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;
using Kind = LockStatus::Kind;

const std::string a(40, 'a');
const std::string b(40, 'b');

/// A letter a node: 'a' and 'b' hold it, '.' is free, '?' is silent, '!' has a key that is no lock.
std::vector<KeyFacts> nodes(const std::string& letters) {
    std::vector<KeyFacts> result;
    for (const char letter : letters) {
        KeyFacts it;
        it.expires_in = 10s + 1s * result.size();
        if (letter == '.') it.state = KeyFacts::State::free;
        if (letter == '!') it.state = KeyFacts::State::no_lock;
        if (letter == 'a' || letter == 'b') {
            it.state = KeyFacts::State::held;
            it.owner = std::string(40, letter);
        }
        result.push_back(it);
    }
    return result;
}

struct Row {
    const char* keys;
    Kind kind;
};

TEST(LockStatus, IsWhatAMajoritySays) {
    const std::vector<Row> table{
        {"aaaaa", Kind::held},      {"aaabb", Kind::held},      {"aaa??", Kind::held},
        {"aaa..", Kind::held},      {".....", Kind::free},      {"...aa", Kind::free},
        {"...??", Kind::free},      {"aabb.", Kind::split},     {"aa..b", Kind::split},
        {"aa!!!", Kind::split},     {"aa..?", Kind::uncertain}, {"aab??", Kind::uncertain},
        {"..ab?", Kind::uncertain}, {"a..??", Kind::uncertain}, {"aa???", Kind::no_quorum},
        {"?????", Kind::no_quorum}, {"aa", Kind::held},         {"a.", Kind::split},
        {"a?", Kind::no_quorum},    {"a", Kind::held},          {"a.a.", Kind::split},
        {"!!!!!", Kind::split},
    };
    for (const auto& [keys, kind] : table)
        EXPECT_EQ(std::string{name_of(lock_status_of(nodes(keys)).kind)}, name_of(kind)) << keys;
}

// The nodes expire after 10, 11, 12, 13 and 14 s: the majority of five is gone with the third last.
TEST(LockStatus, EndsWhenFewerThanAMajorityAreLeft) {
    EXPECT_EQ(lock_status_of(nodes("aaaaa")).expires_in, 12s);
    EXPECT_EQ(lock_status_of(nodes("aaa..")).expires_in, 10s);
    EXPECT_EQ(lock_status_of(nodes("..aaa")).expires_in, 12s);
    EXPECT_EQ(lock_status_of(nodes("a")).expires_in, 10s);
    EXPECT_FALSE(lock_status_of(nodes("aabb.")).expires_in);
}

TEST(LockStatus, IsSummedUpInALine) {
    EXPECT_EQ(summary_of(lock_status_of(nodes("bba.b"))),
              "held by " + b + " on 3 of 5 nodes, expires in 10.0 s");
    EXPECT_EQ(summary_of(lock_status_of(nodes("..."))), "free");
    EXPECT_EQ(summary_of(lock_status_of(nodes("ab."))), "held by nobody: the votes are split");
    EXPECT_EQ(summary_of(lock_status_of(nodes("a??"))), "no quorum: 1 of 3 nodes answered");
    EXPECT_EQ(summary_of(lock_status_of(nodes("aa..?"))),
              "uncertain: " + a + " on 2 of 5 nodes, and 1 of 5 nodes did not answer");
}

TEST(LockStatus, SaysWhatRefusesEverybody) {
    EXPECT_THAT(
        summary_of(lock_status_of(nodes("!!!"))),
        testing::EndsWith("on 3 of 3 nodes the key is no lock: it refuses everybody until it is deleted"));
}

TEST(LockStatus, SaysThatAnOwnerIsNotOfThisLibrary) {
    auto keys = nodes("aaa");
    for (auto& key : keys) key.owner = "worker-7";
    EXPECT_EQ(summary_of(lock_status_of(keys)),
              "held by \"worker-7\" on 3 of 3 nodes, expires in 11.0 s, no owner of this library");
}

TEST(Owners, AreShownPrintableAndShort) {
    EXPECT_EQ(shown(a), a);
    EXPECT_EQ(shown(""), "\"\"");
    EXPECT_EQ(shown("line\nbreak\x1b[31m"), "\"line?break?[31m\"");
    EXPECT_EQ(shown(std::string(500, 'x')), '"' + std::string(36, 'x') + "\"...");
    EXPECT_EQ(shown(std::string(40, 'A')), '"' + std::string(36, 'A') + "\"...") << "ours are in lower case";
}

}  // namespace
}  // namespace redlock::tool
