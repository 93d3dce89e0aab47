// The lock draws an owner for each attempt. A caller cannot pass one, and so cannot share one (S53).
#include "world.hpp"

#include <redlock/entropy.hpp>
#include <redlock/recursive_lock.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace redlock::test::owner_test {
namespace {

/// True if `Value` can be any argument of the constructor after the names.
template <class L, class Value>
concept IsMadeWith = std::constructible_from<L, Nodes&, const char*, Value> ||
    std::constructible_from<L, Nodes&, const char*, LockOptions, Value> ||
    std::constructible_from<L, Nodes&, const char*, LockOptions, Clock&, Value> ||
    std::constructible_from<L, Nodes&, const char*, LockOptions, Clock&, Entropy&, Value>;

template <class L, class Value>
concept IsAcquiredWith = requires(L& lock, Value value) {
    lock.acquire(value);
}
|| requires(L& lock, Value value) {
    lock.try_acquire(value);
}
|| requires(L& lock, Value value) {
    lock.lock(value);
}
|| requires(L& lock, Value value) {
    lock.try_lock(value);
}
|| requires(L& lock, Value value) {
    lock.owner(value);
};

template <class L, class... Values>
constexpr bool takes_any_of = ((IsMadeWith<L, Values> || IsAcquiredWith<L, Values>) || ...);

template <class L>
constexpr bool takes_an_owner =
    takes_any_of<L, Owner, std::string, std::string_view, const char*, std::array<std::byte, 20>>;

static_assert(IsMadeWith<Lock, LockOptions> && IsAcquiredWith<Lock, std::stop_token>,
              "so the concepts can hold");
static_assert(!takes_an_owner<Lock>);
static_assert(!takes_an_owner<RecursiveLock>);

template <class Options>
concept NamesAnOwner = requires(Options& options) {
    options.owner;
}
|| requires(Options& options) {
    options.value;
}
|| requires(Options& options) {
    options.token;
}
|| requires(Options& options) {
    options.identifier;
}
|| requires(Options& options) {
    options.id;
};
struct OptionsWithAnOwner {
    std::string owner;
};
static_assert(NamesAnOwner<OptionsWithAnOwner>);
static_assert(!NamesAnOwner<LockOptions>);

std::string owner_of_an_acquisition(World& world, Lock& lock) {
    EXPECT_THAT(lock.try_acquire(), Succeeds());
    std::string owner{lock.owner()};
    EXPECT_THAT(lock.release(), Succeeds());
    world.forget_events();
    world.pass(1ms);
    return owner;
}

// S6. The locks use the generator that a Lock has by default.
TEST(OwnerOfALock, IsDifferentForEachAcquisition) {
    constexpr std::size_t acquisitions = 1'000;
    World world;
    Lock one{world, "a", {}, world.clock};
    Lock another{world, "b", {}, world.clock};
    std::unordered_set<std::string> owners;
    for (std::size_t i = 0; i < acquisitions; ++i) {
        owners.insert(owner_of_an_acquisition(world, one));
        owners.insert(owner_of_an_acquisition(world, another));
    }
    EXPECT_EQ(owners.size(), 2 * acquisitions);
}

// The holder description is not the owner: two locks with the same description exclude each other.
TEST(OwnerOfALock, IsNotTheHolderDescription) {
    World world;
    auto ours = world.held(LockOptions{.holder = "host 7"});
    auto theirs = world.lock({.retry = {.attempts = 1}, .holder = "host 7"});
    EXPECT_THAT(theirs.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(theirs.release(), FailsWith(Errc::not_held));
    EXPECT_EQ(world.held_by(ours.owner()), 5U);
}

}  // namespace
}  // namespace redlock::test::owner_test
