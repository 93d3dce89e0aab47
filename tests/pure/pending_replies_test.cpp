// Which reply belongs to which command, on a connection that may still receive late replies (rules D1, B5).
#include <redlock/detail/pending_replies.hpp>

#include <gtest/gtest.h>

#include <string>

namespace redlock::detail {
namespace {

using namespace std::chrono_literals;
using Reply = PendingReplies::Reply;

const std::string resource[] = {"r"};

Command set_of(std::string_view owner, std::chrono::milliseconds ttl = 1s) {
    return {.verb = Verb::set_if_absent, .resources = resource, .owner = owner, .ttl = ttl};
}
Command extension_of(std::string_view owner, std::chrono::milliseconds ttl = 1s) {
    return {.verb = Verb::compare_and_expire, .resources = resource, .owner = owner, .ttl = ttl};
}
Command release_of(std::string_view owner) {
    return {.verb = Verb::compare_and_delete, .resources = resource, .owner = owner};
}

/// Sends the only command of a round.
void ask(PendingReplies& pending, const Command& command) {
    pending.expect_answers(1);
    pending.sent(command);
}

TEST(PendingReplies, TheReplyToTheLastCommandIsTheAnswer) {
    PendingReplies pending;
    EXPECT_TRUE(pending.none());
    ask(pending, set_of("A"));
    EXPECT_EQ(pending.count(), 1u);
    EXPECT_EQ(pending.answered(), 0u);
    EXPECT_EQ(pending.received(), Reply::answer);
    EXPECT_EQ(pending.answered(), 1u);
    EXPECT_TRUE(pending.none());
}

// D1.
TEST(PendingReplies, RepliesToEarlierCommandsAreLate) {
    PendingReplies pending;
    ask(pending, set_of("A"));
    ask(pending, extension_of("A"));
    ask(pending, release_of("A"));
    EXPECT_EQ(pending.received(), Reply::late);
    EXPECT_EQ(pending.received(), Reply::late);
    EXPECT_EQ(pending.answered(), 0u);
    EXPECT_EQ(pending.received(), Reply::answer);
}

// D1.
TEST(PendingReplies, AReplyWithoutACommandIsUnexpected) {
    PendingReplies pending;
    EXPECT_EQ(pending.received(), Reply::unexpected);
    ask(pending, set_of("A"));
    EXPECT_EQ(pending.received(), Reply::answer);
    EXPECT_EQ(pending.received(), Reply::unexpected);
    EXPECT_TRUE(pending.none());
}

TEST(PendingReplies, RepliesToManyCommandsAreMatchedInOrder) {
    PendingReplies pending;
    ask(pending, extension_of("late"));
    pending.expect_answers(300);
    for (int i = 0; i < 300; ++i) pending.sent(extension_of(std::to_string(i)));
    EXPECT_EQ(pending.received(), Reply::late);
    for (std::size_t i = 1; i <= 300; ++i) {
        EXPECT_EQ(pending.received(), Reply::answer);
        EXPECT_EQ(pending.answered(), i);
    }
    EXPECT_EQ(pending.received(), Reply::unexpected);
}

// A release may be written after AUTH, SELECT and PING.
TEST(PendingReplies, RepliesToTheHandshakeAreNotAnswers) {
    PendingReplies pending;
    pending.sent_other(3);
    ask(pending, release_of("A"));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(pending.received(), Reply::late);
    EXPECT_EQ(pending.received(), Reply::answer);
}

TEST(PendingReplies, AReplyThatIsNotAwaitedIsNotAnAnswer) {
    PendingReplies pending;
    ask(pending, set_of("A"));
    EXPECT_EQ(pending.received(), Reply::answer);
    pending.expect_answers(0);
    pending.sent_other(2);
    EXPECT_EQ(pending.received(), Reply::late);
    EXPECT_EQ(pending.received(), Reply::late);
}

// ---- The SET that has neither a reply nor a release (B5).

TEST(PendingReplies, RememberThePendingSet) {
    for (const auto verb : {Verb::set_if_absent, Verb::set_and_count, Verb::enter_queue}) {
        PendingReplies pending;
        EXPECT_FALSE(pending.is_bound());
        EXPECT_FALSE(pending.is_bound_to("")) << "of no owner";
        auto command = set_of("A");
        command.verb = verb;
        ask(pending, command);
        EXPECT_TRUE(pending.is_bound_to("A"));
        EXPECT_FALSE(pending.is_bound_to("B"));
        (void)pending.received();
        EXPECT_FALSE(pending.is_bound()) << "it is answered";
    }
}

TEST(PendingReplies, DoNotRememberOtherCommandsAsASet) {
    for (const auto verb : {Verb::compare_and_expire, Verb::compare_and_delete, Verb::raise_count}) {
        PendingReplies pending;
        auto command = set_of("A");
        command.verb = verb;
        ask(pending, command);
        EXPECT_FALSE(pending.is_bound());
    }
}

// A release follows the writing of a holder description, and the next SET follows its removal.
TEST(PendingReplies, RememberAPendingHolderDescription) {
    PendingReplies pending;
    auto note = set_of("A");
    note.verb = Verb::describe_holder;
    ask(pending, note);
    EXPECT_TRUE(pending.is_bound_to("A"));
    EXPECT_FALSE(pending.may_release(resource));
    (void)pending.received();
    note.ttl = 0ms;
    ask(pending, note);
    EXPECT_FALSE(pending.is_bound());
    EXPECT_TRUE(pending.may_release(resource));
}

TEST(PendingReplies, ASetIsNotPendingOnceItsReleaseFollowsIt) {
    PendingReplies pending;
    ask(pending, set_of("A"));
    ask(pending, release_of("B"));
    EXPECT_TRUE(pending.is_bound_to("A")) << "another's release does not count";
    ask(pending, release_of("A"));
    EXPECT_FALSE(pending.is_bound());
}

TEST(PendingReplies, ASetStaysPendingWhileEarlierRepliesArrive) {
    PendingReplies pending;
    ask(pending, release_of("B"));
    ask(pending, set_of("A"));
    EXPECT_EQ(pending.received(), Reply::late);
    EXPECT_TRUE(pending.is_bound_to("A"));
}

TEST(PendingReplies, ASetStaysPendingIfAnExtensionFollowsIt) {
    PendingReplies pending;
    ask(pending, set_of("A"));
    ask(pending, extension_of("A"));
    EXPECT_TRUE(pending.is_bound_to("A"));
    EXPECT_EQ(pending.received(), Reply::late);
    EXPECT_EQ(pending.received(), Reply::answer);
    EXPECT_FALSE(pending.is_bound());
}

TEST(PendingReplies, KeepACopyOfTheOwnerOfASet) {
    PendingReplies pending;
    {
        const std::string owner(40, 'a');
        ask(pending, set_of(owner));
    }
    EXPECT_TRUE(pending.is_bound_to(std::string(40, 'a')));
}

// The handshake is written in front of a queued command, whose reply therefore comes after those to the
// handshake.
TEST(PendingReplies, CountAHandshakeBeforeQueuedCommands) {
    PendingReplies pending;
    ask(pending, release_of("A"));
    pending.sent_first(2);
    EXPECT_EQ(pending.received(), Reply::late);
    EXPECT_EQ(pending.received(), Reply::late);
    EXPECT_TRUE(pending.may_release(resource)) << "only the handshake is answered";
    EXPECT_EQ(pending.received(), Reply::answer);
    EXPECT_FALSE(pending.may_release(resource));
    EXPECT_TRUE(pending.none());
}

// ---- For how long pending commands matter.

TEST(PendingReplies, ReturnTheLongestPendingTtl) {
    PendingReplies pending;
    ask(pending, set_of("A", 10s));
    ask(pending, extension_of("A", 30s));
    ask(pending, release_of("A"));
    EXPECT_EQ(pending.max_ttl(), 30s);
    for (int i = 0; i < 3; ++i) (void)pending.received();
    ask(pending, set_of("B", 5s));
    EXPECT_EQ(pending.max_ttl(), 5s) << "a command with a reply does not count";
}

}  // namespace
}  // namespace redlock::detail
