// The simulation must find what is wrong on purpose, and nothing where the same worlds are right.
#include "mutants.hpp"
#include "random_world.hpp"
#include "staged_world.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace redlock::sim {
namespace {

constexpr std::uint64_t most_seeds = 500;
constexpr std::uint64_t least_seeds = 20;

class Mistake : public testing::TestWithParam<Mutant> {};

std::optional<Outcome> first_violation(const Planner& planner, std::uint64_t seeds) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed)
        if (auto outcome = run_schedule(seed, planner); !outcome.violations.empty()) return outcome;
    return std::nullopt;
}

TEST_P(Mistake, IsFoundByTheClaimItBreaks) {
    const auto& mutant = GetParam();
    const auto found = first_violation(with_flaw(mutant), most_seeds);
    ASSERT_TRUE(found) << mutant.what;
    EXPECT_TRUE(std::ranges::count(mutant.breaks, found->violations.front().rule))
        << name_of(found->violations.front().rule);
    const auto seeds = std::max(found->seed, least_seeds);
    EXPECT_FALSE(first_violation(without_flaw(mutant), seeds)) << "also where the mistake is not made";
}

/// "quorum-half" as GoogleTest wants names: QuorumHalf.
std::string camel_case(const testing::TestParamInfo<Mutant>& mutant) {
    std::string result;
    bool upper = true;
    for (const char c : mutant.param.name) {
        if (c != '-') result += upper ? static_cast<char>(std::toupper(c)) : c;
        upper = c == '-';
    }
    return result;
}

INSTANTIATE_TEST_SUITE_P(Mutants, Mistake, testing::ValuesIn(mutants().begin(), mutants().end()), camel_case);

/// That keys which are made anew also let two hold is rare. Bob's grant of node 2 is counted while he waits
/// for node 0; node 2 is flushed. Alice extends on node 1, and on node 2 if that makes her key anew; her
/// extension reaches node 0 when her key there has expired and bob has it.
void extend_where_bob_was_granted(StagedWorld& world, Result& alices, Result& bobs) {
    LockOptions options = once(300ms);
    options.drift_factor = 0;
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    auto& carol = world.client("carol");
    for (const std::size_t node : {0U, 1U}) carol.cut_off(node, 10ms);
    carol.does([&carol, options] {
        CheckedLock lock{carol, the_resource, options};
        EXPECT_THAT(lock.acquire(), FailsWith(Errc::held_by_other)) << "but node 2 is hers for 10 ms";
    });
    alice.does([&, options] {
        alice.sleep(1ms);
        CheckedLock lock{alice, the_resource, options};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.sleep(249ms);
        alice.cut_off(0, 80ms);
        alices = lock.extend();
        alice.sleep(100ms);
    });
    bob.does([&, options] {
        bob.sleep(230ms);
        bob.cut_off(0, 73ms);
        CheckedLock lock{bob, the_resource, options};
        bobs = lock.acquire();
        bob.sleep(50ms);
    });
    world.at(240ms, [&] { world.node(2).flush(); });
    world.run();
}

WorldOptions where_bob_was_granted(Flaws flaws) {
    return {.node_timeout = 120ms, .quarantine = 300ms, .round = Round::all_at_once, .flaws = flaws};
}

TEST(StagedMutants, AnExtensionThatMakesMissingKeysAnewLetsTwoHold) {
    Result alices{Errc::not_held};
    Result bobs{Errc::not_held};
    StagedWorld world{where_bob_was_granted({.extend_makes_keys = true})};
    extend_where_bob_was_granted(world, alices, bobs);
    EXPECT_THAT(alices, Succeeds());
    EXPECT_THAT(bobs, Succeeds());
    EXPECT_THAT(world.violations(), ElementsAre(Breaks(Rule::one_holder)));
}

TEST(StagedMutants, AnExtensionThatDoesNotLosesTheLockThere) {
    Result alices{Errc::not_held};
    Result bobs{Errc::not_held};
    StagedWorld world{where_bob_was_granted({})};
    extend_where_bob_was_granted(world, alices, bobs);
    EXPECT_THAT(alices, FailsWith(Errc::lost));
    EXPECT_THAT(bobs, Succeeds());
    EXPECT_THAT(world.violations(), IsEmpty());
}

}  // namespace
}  // namespace redlock::sim
