// What rounds that are over have left unanswered on a lane: as the leading thread finds it on the
// connections, and as a thread leaves it.

#include <gtest/gtest.h>

#include "round/unanswered.hpp"

#include <string>
#include <vector>

namespace redlock::detail::unanswered_test {
namespace {

const std::vector<std::string> resources{"r"};
const Command set{.verb = Verb::set_if_absent, .resources = resources, .owner = "A"};
const Command release{.verb = Verb::compare_and_delete, .resources = resources, .owner = "A"};
const Command set_of_another{.verb = Verb::set_if_absent, .resources = resources, .owner = "B"};

TEST(Unanswered, ARoundThatWasLeftBindsItsOwnerToItsNodes) {
    Unanswered unanswered;
    const Request left{.command = set, .to = NodeSet{0b101}};
    unanswered.leave({&left, 1});
    EXPECT_EQ(unanswered.bound_nodes(release), NodeSet{0b101});
    EXPECT_TRUE(unanswered.bound_nodes(set_of_another).none());
    EXPECT_TRUE(unanswered.any_bound());
    unanswered.end_left();
    EXPECT_FALSE(unanswered.any());
    EXPECT_TRUE(unanswered.bound_nodes(release).none());
}

TEST(Unanswered, ALateReplyBindsUntilItIsNotFoundAnyMore) {
    Unanswered unanswered;
    unanswered.update([](LateReplies& late) {
        late.any = true;
        late.bound.push_back({LateReplies::binding_of(KeyEffect::acquires, "A"), NodeSet{0b10}});
    });
    EXPECT_EQ(unanswered.bound_nodes(release), NodeSet{0b10});
    EXPECT_FALSE(unanswered.any_left());
    unanswered.update([](LateReplies&) {});
    EXPECT_FALSE(unanswered.any());
    EXPECT_FALSE(unanswered.any_bound());
}

TEST(Unanswered, ASetShouldFollowTheReleaseOfItsResource) {
    Unanswered unanswered;
    unanswered.update([](LateReplies& late) {
        late.any = true;
        late.cleaned = LateReplies::bits_of(resources);
    });
    EXPECT_TRUE(unanswered.may_release_before(set_of_another));
    EXPECT_FALSE(unanswered.may_release_before(release)) << "it cannot be refused because of the other one";
    EXPECT_FALSE(unanswered.any_bound());
}

TEST(Unanswered, EveryCommandIsBoundToAllNodesIfThereWasNoMemory) {
    Unanswered unanswered;
    unanswered.update([](LateReplies&) { throw std::bad_alloc{}; });
    EXPECT_TRUE(unanswered.bound_nodes(set_of_another).all());
    unanswered.update([](LateReplies&) {});
    EXPECT_TRUE(unanswered.bound_nodes(set_of_another).none());
}

}  // namespace
}  // namespace redlock::detail::unanswered_test
