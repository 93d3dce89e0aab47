// The majority of the configured nodes, and its consequences.
#include "world.hpp"

namespace redlock::test::quorum_test {
namespace {

// S14, A4. The values are compile-time constants.
static_assert(quorum(4) == 3 && quorum(5) == 3);

// S1. Two majorities have a node in common, and that node grants only one of them. Half of the nodes is too
// few.
TEST(Quorum, SharesANodeWithEveryOtherQuorum) {
    for (std::size_t nodes = 1; nodes <= max_nodes; ++nodes) {
        EXPECT_GT(2 * quorum(nodes), nodes);
        EXPECT_LE(2 * (quorum(nodes) - 1), nodes) << "one node fewer is no quorum";
    }
}

/// The first `afflicted` of `nodes` nodes have a fault.
struct Case {
    std::size_t nodes, afflicted;
    bool majority_is_well() const { return nodes - afflicted >= quorum(nodes); }
};

std::vector<Case> cases() {
    std::vector<Case> all;
    for (std::size_t nodes = 1; nodes <= max_nodes; ++nodes)
        for (std::size_t afflicted = 0; afflicted <= nodes; ++afflicted) all.push_back({nodes, afflicted});
    return all;
}

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.afflicted << " of " << c.nodes << " nodes";
}

struct EveryMinority : testing::TestWithParam<Case> {
    template <class Affliction>
    void afflict(Affliction affliction) {
        for (std::size_t node = 0; node < GetParam().afflicted; ++node) affliction(node);
    }

    World world{GetParam().nodes};
};

// A4, S3. Nodes that are down from the start still count.
// A3. Every node is tried, including those that hang.
// A7. An error is neither a grant nor a refusal.
// S14, A2. A lost reply is not a grant even if the key was set. That key is removed with the others.
TEST_P(EveryMinority, MayFailInAnyWay) {
    constexpr void (*ways[])(World&, std::size_t) = {
        [](auto& it, auto node) { it.cut(node); },
        [](auto& it, auto node) { it.silence(node); },
        [](auto& it, auto node) { it.lie(Errc::server_error, node); },
        [](auto& it, auto node) { it.lose_replies_of(node); },
    };
    for (const auto fail : ways) {
        World failing{GetParam().nodes};
        for (std::size_t node = 0; node < GetParam().afflicted; ++node) fail(failing, node);
        auto lock = failing.lock(no_retry());
        const auto result = lock.acquire();
        EXPECT_EQ(result.error(), GetParam().majority_is_well() ? std::error_code{} : Errc::no_quorum);
        EXPECT_EQ(lock.valid(), GetParam().majority_is_well());
        EXPECT_EQ(failing.clean(), !result);
        if (!result) continue;
        EXPECT_THAT(lock.extend(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
    }
}

// S14. The keys of other clients on a minority do not exclude us.
TEST_P(EveryMinority, MayBeHeldByAnotherClient) {
    afflict([this](auto node) { world.occupy(1h, node); });
    auto lock = world.lock(no_retry());
    const auto result = lock.acquire();
    EXPECT_EQ(result.error(), GetParam().majority_is_well() ? std::error_code{} : Errc::held_by_other);
}

// S1, S4. Whatever a minority does, no other client acquires the lock while we hold it.
TEST_P(EveryMinority, MayForgetTheKey) {
    auto ours = world.lock(no_retry()), theirs = world.lock(no_retry());
    ASSERT_THAT(ours.acquire(), Succeeds());
    afflict([this](auto node) { world.forget(node); });
    const bool forgotten_by_a_majority = GetParam().afflicted >= quorum(GetParam().nodes);
    EXPECT_EQ(static_cast<bool>(theirs.acquire()), forgotten_by_a_majority);
}

INSTANTIATE_TEST_SUITE_P(UpTo15Nodes, EveryMinority, testing::ValuesIn(cases()), [](const auto& test) {
    return std::to_string(test.param.afflicted) + "of" + std::to_string(test.param.nodes);
});

}  // namespace
}  // namespace redlock::test::quorum_test
