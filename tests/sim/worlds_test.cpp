// The simulation must find what is wrong on purpose, and nothing where the same worlds are right. The
// mistakes in the library itself are in tests/mutants.
#include "worlds.hpp"
#include "random_world.hpp"
#include "staged_world.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <ostream>

namespace redlock::sim {

inline void PrintTo(const NamedWorld& world, std::ostream* out) {
    *out << world.what;
}
inline void PrintTo(const UnsafeWorld& world, std::ostream* out) {
    *out << world.world.what;
}

namespace {

constexpr std::uint64_t most_seeds = 500;
constexpr std::uint64_t few_seeds = 20;

std::optional<Outcome> first_violation(const NamedWorld& world, std::uint64_t seeds) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed)
        if (auto outcome = run_schedule(seed, planner_of(world)); !outcome.violations.empty()) return outcome;
    return std::nullopt;
}

/// "quorum-half" as GoogleTest wants names: QuorumHalf.
std::string camel_case(std::string_view name) {
    std::string result;
    bool upper = true;
    for (const char c : name) {
        if (c != '-') result += upper ? static_cast<char>(std::toupper(c)) : c;
        upper = c == '-';
    }
    return result;
}

class SafeWorld : public testing::TestWithParam<NamedWorld> {};

TEST_P(SafeWorld, ViolatesNoClaim) {
    const auto found = first_violation(GetParam(), few_seeds);
    EXPECT_FALSE(found) << "seed " << found->seed << ": " << name_of(found->violations.front().rule);
}

INSTANTIATE_TEST_SUITE_P(Worlds, SafeWorld, testing::ValuesIn(worlds().begin(), worlds().end()),
                         [](const auto& it) { return camel_case(it.param.name); });

class UnsafeAssumption : public testing::TestWithParam<UnsafeWorld> {};

TEST_P(UnsafeAssumption, IsFound) {
    const auto found = first_violation(GetParam().world, most_seeds);
    ASSERT_TRUE(found);
    EXPECT_TRUE(std::ranges::count(GetParam().breaks, found->violations.front().rule))
        << name_of(found->violations.front().rule);
}

INSTANTIATE_TEST_SUITE_P(Worlds, UnsafeAssumption,
                         testing::ValuesIn(unsafe_worlds().begin(), unsafe_worlds().end()),
                         [](const auto& it) { return camel_case(it.param.world.name); });

/// An extension that made missing keys anew would let two hold. Bob's grant of node 2 is counted while he
/// waits for node 0; node 2 is flushed. Alice extends on node 1, and on node 2 if that makes her key anew;
/// her extension reaches node 0 when her key there has expired and bob has it.
void extend_where_bob_was_granted(StagedWorld& world, Result& alices, Result& bobs) {
    LockOptions options = once(300ms);
    options.drift_factor = 0;
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    auto& carol = world.client("carol");
    for (const std::size_t node : {0U, 1U}) carol.cut_off(node, 10ms);
    carol.does([&carol, options] {
        CheckedLock lock{carol, resource, options};
        EXPECT_THAT(lock.acquire(), FailsWith(Errc::held_by_other)) << "but node 2 is hers for 10 ms";
    });
    alice.does([&, options] {
        alice.sleep(1ms);
        CheckedLock lock{alice, resource, options};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.sleep(249ms);
        alice.cut_off(0, 80ms);
        alices = lock.extend();
        alice.sleep(100ms);
    });
    bob.does([&, options] {
        bob.sleep(230ms);
        bob.cut_off(0, 73ms);
        CheckedLock lock{bob, resource, options};
        bobs = lock.acquire();
        bob.sleep(50ms);
    });
    world.at(240ms, [&] { world.node(2).flush(); });
    world.run();
}

TEST(Extension, MakesNoMissingKeyAnew) {
    Result alices{Errc::not_held};
    Result bobs{Errc::not_held};
    StagedWorld world{{.node_timeout = 120ms, .quarantine = 300ms, .round = Round::all_at_once}};
    extend_where_bob_was_granted(world, alices, bobs);
    EXPECT_THAT(alices, FailsWith(Errc::lost));
    EXPECT_THAT(bobs, Succeeds());
    EXPECT_THAT(world.violations(), IsEmpty());
}

}  // namespace
}  // namespace redlock::sim
