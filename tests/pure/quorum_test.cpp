// The majority: of the nodes configured, by integer division, and what follows from it.
#include "world.hpp"

namespace redlock::test {
namespace {

// S14, A4. Known at compile time, so that nobody need wonder about the even numbers.
static_assert(quorum(1) == 1);
static_assert(quorum(2) == 2);
static_assert(quorum(3) == 2);
static_assert(quorum(4) == 3);
static_assert(quorum(5) == 3);
static_assert(quorum(6) == 4);
static_assert(quorum(7) == 4);

// S1. The reason for a majority: any two have a node in common, which grants only one of them; half is too
// few.
TEST(Quorum, MeetsEveryOtherQuorumInANode) {
    for (std::size_t nodes = 1; nodes <= max_nodes; ++nodes) {
        EXPECT_GT(2 * quorum(nodes), nodes);
        EXPECT_LE(2 * (quorum(nodes) - 1), nodes) << "one node fewer would not do";
    }
}

/// Of `nodes` nodes, the first `afflicted`.
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
// A3. Every node is tried, the hung ones included.
// A7. An error is neither a grant nor "taken".
// S14, A2. A lost reply is not a grant, though the key was set, and its key is removed with the others.
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

// S14. Keys of others on a minority do not keep us out.
TEST_P(EveryMinority, MayBeHeldByAnother) {
    afflict([this](auto node) { world.occupy(1h, node); });
    auto lock = world.lock(no_retry());
    const auto result = lock.acquire();
    EXPECT_EQ(result.error(), GetParam().majority_is_well() ? std::error_code{} : Errc::held_by_other);
}

// S1, S4. Whatever a minority does, nobody else gets in while we hold.
TEST_P(EveryMinority, MayForgetTheKey) {
    auto ours = world.lock(no_retry()), theirs = world.lock(no_retry());
    ASSERT_THAT(ours.acquire(), Succeeds());
    afflict([this](auto node) { world.forget(node); });
    const bool forgotten_by_a_majority = GetParam().afflicted >= quorum(GetParam().nodes);
    EXPECT_EQ(static_cast<bool>(theirs.acquire()), forgotten_by_a_majority);
}

INSTANTIATE_TEST_SUITE_P(OfUpTo15, EveryMinority, testing::ValuesIn(cases()), [](const auto& test) {
    return std::to_string(test.param.afflicted) + "of" + std::to_string(test.param.nodes);
});

}  // namespace
}  // namespace redlock::test
