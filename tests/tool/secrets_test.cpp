#include "process/secrets.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

namespace redlock::tool::secrets_test {
namespace {

TEST(Secrets, AreTheUserAndPasswordBeforeTheHost) {
    EXPECT_EQ(without_secrets("redis://:secret@host:1/2"), "redis://*******@host:1/2");
    EXPECT_EQ(without_secrets("redis://user:secret@host"), "redis://***********@host");
    EXPECT_EQ(without_secrets("--node=rediss://u:p@h"), "--node=rediss://***@h");
}

TEST(Secrets, MayContainAnAtOrASlash) {
    EXPECT_EQ(without_secrets("redis://:a@b/c@host"), "redis://******@host");
}

TEST(Secrets, AreErasedInSeveralAddressesOfAWord) {
    const auto text = without_secrets("redis://:one@a,redis://:two@b");
    EXPECT_EQ(text.find("one"), text.npos);
    EXPECT_EQ(text.find("two"), text.npos);
}

TEST(Secrets, IncludeThoseOfSentinels) {
    EXPECT_EQ(without_secrets("redis+sentinel://s1,s2/m?sentinel_password=ab&sentinel_user=u"),
              "redis+sentinel://s1,s2/m?sentinel_password=**&sentinel_user=u");
    EXPECT_EQ(without_secrets("--node=redis+sentinel://:pw@s1/m?sentinel_password=a@b&x=1"),
              "--node=redis+sentinel://***@s1/m?sentinel_password=***&x=1");
    const auto two = without_secrets(
        "redis+sentinel://s/m?sentinel_password=one&sentinel_user=u,"
        "redis+sentinel://s/n?sentinel_password=two");
    EXPECT_EQ(two.find("one"), two.npos);
    EXPECT_EQ(two.find("two"), two.npos);
}

// A message may quote an argument with a blank in its password. Nobody knows where the argument ends.
TEST(Secrets, AreErasedInAMessageWhateverSeparatesItsWords) {
    EXPECT_EQ(without_secrets("not expected: redis://:pw@a x"), "not expected: redis://***@a x");
    EXPECT_EQ(without_secrets("not expected: redis://u:p w\tx\ny@a b"),
              "not expected: redis://*********@a b");
    EXPECT_EQ(without_secrets("not expected: redis+sentinel://s/m?sentinel_password=a b"),
              "not expected: redis+sentinel://s/m?sentinel_password=***");
}

TEST(Secrets, AreNotFoundInOtherText) {
    for (const auto* const text : {"", "10.0.0.1:6379", "a@b", "redis://host/1", "mail me@x://y"})
        EXPECT_EQ(without_secrets(text), text);
}

TEST(Secrets, AreErasedInTheArguments) {
    std::string program{"redlock"};
    std::string node{"redis://:secret@host"};
    std::array<char*, 2> arguments{program.data(), node.data()};
    erase_secrets(2, arguments.data());
    EXPECT_EQ(program, "redlock");
    EXPECT_EQ(node, "redis://*******@host");
}

TEST(Secrets, AreErasedInAVariableThatExists) {
    constexpr const char* name = "REDLOCK_SECRET_OF_THIS_TEST";
    erase_variable(name);                             // there is none, so nothing happens
    ::setenv(name, "redis://:pw@a", 1);               // NOLINT(concurrency-mt-unsafe): one thread
    const std::string_view value{std::getenv(name)};  // NOLINT(concurrency-mt-unsafe)
    erase_variable(name);
    EXPECT_EQ(value, std::string(value.size(), '\0'));
    EXPECT_EQ(std::getenv(name), nullptr);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace redlock::tool::secrets_test
