// Which reply belongs to which command, on a connection that may still receive late replies (rules D1, B5).

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "round/pending_replies.hpp"

namespace redlock::detail::pending_replies_test {
namespace {

using namespace std::chrono_literals;

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

struct Round final : Requester {};
const Round earlier;
const Round present;

struct PendingReplies : testing::Test {
    /// A round sends its only command. The earlier round does not await its replies any more.
    void ask(const Command& command) {
        pending.stop_awaiting(present);
        pending.add(command, &present);
    }
    /// The next reply comes, with this number.
    void receive(long long number = 0) {
        Reply reply{.kind = Reply::Kind::integer, .integer = number};
        pending.received(reply);
    }
    /// Takes an answer. Returns its number, or −1 if there is none for this round.
    long long take(const Round& round) {
        const auto* const answer = pending.take_answer(round);
        return answer ? answer->reply.integer : -1;
    }
    /// Returns true if an extension of this owner must be sent behind its SET.
    bool binds(std::string_view owner) const { return pending.must_be_followed_by(extension_of(owner)); }

    detail::PendingReplies pending;
};

TEST_F(PendingReplies, TheSetOfAnOwnerIsFoundUntilItIsAnsweredOrReleased) {
    pending.add(set_of("A"), &present).asking = true;
    pending.add(set_of("B"), &present);
    pending.add(release_of("B"), &present);
    ASSERT_NE(pending.binding_command_of("A"), nullptr);
    EXPECT_TRUE(pending.binding_command_of("A")->asking);
    EXPECT_EQ(pending.binding_command_of("B"), nullptr);
    EXPECT_EQ(pending.binding_command_of("C"), nullptr);
    receive();
    EXPECT_EQ(pending.binding_command_of("A"), nullptr);
}

TEST_F(PendingReplies, ARepeatedReleaseIsSentBehindAskingAgain) {
    auto& release = pending.add(release_of("A"), nullptr);
    EXPECT_FALSE(release.asking);
    release.asking = true;
    detail::PendingReplies repeated;
    EXPECT_TRUE(repeated.add_repetition(release).asking);
}

TEST_F(PendingReplies, TheReplyGoesToTheRequesterOfItsCommand) {
    EXPECT_TRUE(pending.none());
    pending.add(set_of("A"), &present);
    EXPECT_EQ(pending.count(), 1u);
    EXPECT_EQ(pending.answer(), nullptr);
    receive(7);
    EXPECT_TRUE(pending.none());
    ASSERT_NE(pending.answer(), nullptr);
    EXPECT_EQ(pending.answer()->requester, &present);
    EXPECT_EQ(pending.requester(), &present);
    EXPECT_EQ(pending.take_answer(earlier), nullptr) << "it is for another requester";
    EXPECT_EQ(take(present), 7);
    EXPECT_EQ(pending.requester(), nullptr);
    EXPECT_EQ(pending.take_answer(present), nullptr);
}

// D1.
TEST_F(PendingReplies, RepliesOfSeveralRequestersAreMatchedInOrder) {
    for (const auto* const round : {&earlier, &present, &earlier}) pending.add(extension_of("A"), round);
    receive(1);
    receive(2);
    EXPECT_EQ(pending.answer()->requester, &earlier);
    EXPECT_EQ(take(earlier), 1);
    receive(3);
    EXPECT_EQ(pending.answer()->requester, &present);
    EXPECT_EQ(take(present), 2);
    EXPECT_EQ(pending.answer()->requester, &earlier);
    EXPECT_EQ(take(earlier), 3);
}

// D1.
TEST_F(PendingReplies, ARequesterThatLeavesGetsNoReply) {
    for (const auto* const round : {&earlier, &present, &earlier, &present})
        pending.add(extension_of("A"), round);
    receive(1);
    receive(2);
    pending.stop_awaiting(earlier);
    EXPECT_EQ(pending.count(), 2u) << "the late reply is still to be read";
    EXPECT_EQ(take(present), 2);
    EXPECT_EQ(pending.take_answer(present), nullptr);
    receive(3);
    EXPECT_EQ(pending.take_answer(present), nullptr);
    receive(4);
    EXPECT_EQ(take(present), 4);
}

TEST_F(PendingReplies, ALateReplyBetweenAnswersIsSkipped) {
    for (const auto* const round : {&present, &earlier, &present}) pending.add(extension_of("A"), round);
    pending.stop_awaiting(earlier);
    for (int i = 1; i <= 3; ++i) receive(i);
    EXPECT_EQ(take(present), 1);
    EXPECT_EQ(take(present), 3);
    EXPECT_EQ(pending.take_answer(present), nullptr);
}

// A round repeats its release itself while it awaits the reply.
TEST_F(PendingReplies, AReleaseIsToBeRepeatedIfNobodyAwaitsItsReply) {
    pending.add(extension_of("A"), &present);
    pending.add(release_of("A"), &present);
    pending.add(release_of("B"), &earlier);
    EXPECT_EQ(pending.releases_to_repeat(), 0u);
    pending.stop_awaiting(present);
    EXPECT_EQ(pending.releases_to_repeat(), 1u);
    receive();
    EXPECT_EQ(pending.releases_to_repeat(), 1u);
    receive();
    EXPECT_EQ(pending.releases_to_repeat(), 0u) << "it is answered";
    const auto taken = pending.take_releases(earlier);
    pending.stop_awaiting(earlier);
    EXPECT_EQ(pending.releases_to_repeat(), 0u) << "it must not be repeated";
    EXPECT_EQ(taken.releases_to_repeat(), 1u);
}

TEST_F(PendingReplies, AReleaseThatIsSentElsewhereIsNotRepeatedHereAgain) {
    pending.add(release_of("A"), nullptr);
    pending.add(release_of("B"), &present);
    const auto taken = pending.take_repeatable_releases();
    EXPECT_EQ(taken.releases_to_repeat(), 1U) << "a round awaits the other one";
    EXPECT_EQ(pending.releases_to_repeat(), 0U);
    EXPECT_EQ(pending.count(), 2U) << "their replies may come";
}

TEST_F(PendingReplies, ARepeatedReleaseHasTheResourcesAndTheOwnerOfTheFirst) {
    const std::string resources[] = {"r", "another"};
    pending.add(
        {.verb = Verb::compare_and_delete, .resources = resources, .owner = "A", .queue = {}, .shared = true},
        nullptr);
    detail::PendingReplies next;
    const auto& again = next.add_repetition(pending.next());
    EXPECT_EQ(next.releases_to_repeat(), 1u);
    EXPECT_EQ(again.repeats, 1);
    const auto command = again.repetition({});
    EXPECT_EQ(command.verb, Verb::compare_and_delete);
    EXPECT_TRUE(std::ranges::equal(command.resources, resources));
    EXPECT_EQ(command.owner, "A");
    EXPECT_TRUE(command.shared);
    EXPECT_EQ(command.hold_remaining, 0ms);
}

TEST_F(PendingReplies, ARepeatedReleaseKeepsTheRestOfTheMinimumHoldTime) {
    const Clock::time_point now{1h};
    pending.add(release_of("A"), nullptr).hold_until = now + 10s;
    detail::PendingReplies next;
    const auto& again = next.add_repetition(pending.next());
    EXPECT_EQ(again.repetition(now).hold_remaining, 10s);
    EXPECT_EQ(again.repetition(now + 4s).hold_remaining, 6s);
    EXPECT_EQ(again.repetition(now + 11s).hold_remaining, 0s);
}

// The ring turns and grows while commands come and go.
TEST_F(PendingReplies, AnyNumberOfRepliesIsMatchedInOrder) {
    long long sent = 0;
    long long received = 0;
    for (const int burst : {3, 1, 5, 2, 300, 1, 7}) {
        for (int i = 0; i < burst; ++i) pending.add(extension_of(std::to_string(++sent)), &present);
        for (int i = 0; i < (burst + 1) / 2; ++i) {
            receive(++received);
            EXPECT_EQ(take(present), received);
        }
        EXPECT_EQ(pending.count(), static_cast<std::size_t>(sent - received));
    }
}

// The handshake is written in front of a queued command, whose reply therefore comes after those to AUTH,
// SELECT and PING.
TEST_F(PendingReplies, RepliesToTheHandshakeAreNotAnswers) {
    pending.add(set_of("A"), &present);
    for (int i = 0; i < 3; ++i) pending.add_first();
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(pending.next().handshake);
        receive();
    }
    EXPECT_FALSE(pending.next().handshake);
    EXPECT_TRUE(binds("A"));
    receive(7);
    EXPECT_FALSE(binds("A"));
    EXPECT_EQ(take(present), 7);
}

TEST_F(PendingReplies, AnEntryIsNewWhateverItsSlotHeld) {
    auto& release = pending.add(release_of("A"), &present);
    release.by_sha1 = release.uses_queue = release.handshake = true;
    release.script = &scripts::compare_and_delete;
    release.hold_until = Clock::time_point{1s};
    receive();
    (void)pending.take_answer(present);
    const auto& next = pending.add(extension_of("A", 0s), &present);
    EXPECT_FALSE(next.by_sha1 || next.uses_queue || next.handshake);
    EXPECT_EQ(next.effect, KeyEffect::extends);
    EXPECT_EQ(next.script, nullptr);
    EXPECT_FALSE(next.hold_until || next.shared);
}

// ---- Which replies refuse only the form of a command

TEST_F(PendingReplies, ARefusedDigestAndAForbiddenQueueRefuseTheForm) {
    const auto error = [](std::string_view text) {
        return Reply{.kind = Reply::Kind::error, .text = std::string{text}};
    };
    const PendingReply by_sha1{{.by_sha1 = true}};
    const PendingReply in_queue{{.uses_queue = true}};
    const PendingReply plain;
    EXPECT_TRUE(by_sha1.is_form_refused(error("NOSCRIPT No matching script.")));
    EXPECT_TRUE(by_sha1.is_form_refused(error("NOPERM no permissions to run the 'evalsha' command")));
    EXPECT_TRUE(by_sha1.is_form_refused(error("ERR unknown command 'EVALSHA', with args beginning with: ")));
    EXPECT_FALSE(by_sha1.is_form_refused(error("ERR Error running script")));
    EXPECT_FALSE(by_sha1.is_form_refused({.kind = Reply::Kind::text, .text = "ERR unknown command"}));
    EXPECT_TRUE(in_queue.is_form_refused(error("NOPERM no permissions")));
    EXPECT_FALSE(in_queue.is_form_refused(error("NOSCRIPT No matching script.")));
    EXPECT_FALSE(in_queue.is_form_refused(error("OOM command not allowed")));
    EXPECT_FALSE(in_queue.is_form_refused({.kind = Reply::Kind::text, .text = "NOPERM"}));
    EXPECT_FALSE(plain.is_form_refused(error("NOSCRIPT No matching script.")));
    EXPECT_FALSE(plain.is_form_refused(error("NOPERM no permissions")));
    EXPECT_FALSE(plain.is_form_refused(error("ERR unknown command 'EVAL'")));
}

// ---- The SET that has neither a reply nor a release (B5).

TEST_F(PendingReplies, RememberThePendingSet) {
    for (const auto verb : {Verb::set_if_absent, Verb::set_and_count, Verb::enter_queue}) {
        pending = {};
        EXPECT_FALSE(binds("")) << "of no owner";
        auto command = set_of("A");
        command.verb = verb;
        ask(command);
        EXPECT_TRUE(binds("A"));
        EXPECT_FALSE(binds("B"));
        receive();
        EXPECT_FALSE(binds("A")) << "it is answered";
    }
}

TEST_F(PendingReplies, DoNotRememberOtherCommandsAsASet) {
    for (const auto verb : {Verb::compare_and_expire, Verb::compare_and_delete, Verb::raise_count}) {
        pending = {};
        auto command = set_of("A");
        command.verb = verb;
        ask(command);
        EXPECT_FALSE(binds("A"));
    }
}

TEST_F(PendingReplies, OnlyTheAcquisitionFollowsTheTicketThatItRemoves) {
    auto enter = set_of("ticket");
    enter.verb = Verb::enter_queue;
    ask(enter);
    const QueueTerms terms{.ticket = "ticket"};
    auto command = set_of("A");
    EXPECT_FALSE(pending.must_be_followed_by(command));
    command.queue = &terms;
    EXPECT_TRUE(pending.must_be_followed_by(command));
    command.verb = Verb::compare_and_delete;
    EXPECT_FALSE(pending.must_be_followed_by(command));
}

TEST_F(PendingReplies, OnlyTheDeletionOfAHolderDescriptionFollowsItsWriting) {
    auto description = set_of("A");
    description.verb = Verb::describe_holder;
    auto deletion = description;
    deletion.ttl = 0ms;
    ask(description);
    EXPECT_TRUE(pending.must_be_followed_by(deletion));
    EXPECT_FALSE(binds("A"));
    EXPECT_FALSE(pending.must_be_followed_by(release_of("A")));
    receive();
    EXPECT_FALSE(pending.must_be_followed_by(deletion));
    ask(release_of("A"));
    EXPECT_FALSE(pending.must_be_followed_by(deletion)) << "the release may come later";
}

TEST_F(PendingReplies, ASetIsNotPendingOnceItsReleaseFollowsIt) {
    ask(set_of("A"));
    ask(release_of("B"));
    EXPECT_TRUE(binds("A")) << "another's release does not count";
    ask(release_of("A"));
    EXPECT_FALSE(binds("A"));
}

TEST_F(PendingReplies, ASetStaysPendingWhileEarlierRepliesArrive) {
    ask(release_of("B"));
    ask(set_of("A"));
    receive();
    EXPECT_TRUE(binds("A"));
}

TEST_F(PendingReplies, ASetStaysPendingIfAnExtensionFollowsIt) {
    ask(set_of("A"));
    ask(extension_of("A"));
    EXPECT_TRUE(binds("A"));
    receive();
    receive();
    EXPECT_FALSE(binds("A"));
}

TEST_F(PendingReplies, KeepACopyOfTheOwnerOfASet) {
    {
        const std::string owner(40, 'a');
        ask(set_of(owner));
    }
    EXPECT_TRUE(binds(std::string(40, 'a')));
}

// ---- For how long pending commands matter.

TEST_F(PendingReplies, ReturnTheLongestPendingTtl) {
    ask(set_of("A", 10s));
    ask(extension_of("A", 30s));
    ask(release_of("A"));
    EXPECT_EQ(pending.max_ttl(), 30s);
    for (int i = 0; i < 3; ++i) receive();
    ask(set_of("B", 5s));
    EXPECT_EQ(pending.max_ttl(), 5s) << "a command with a reply does not count";
}

}  // namespace
}  // namespace redlock::detail::pending_replies_test
