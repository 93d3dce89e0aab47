#include "random_world.hpp"

#include "habits.hpp"
#include "storm.hpp"
#include "world.hpp"

#include <stdexcept>
#include <string>

namespace redlock::sim {
namespace {

void populate(World& world, const Plan& plan, Storm& storm, Dice& dice) {
    for (int number = 1; number <= plan.clients; ++number) {
        auto& client = world.client("client " + std::to_string(number));
        client.process().meet(plan.hazards);
        for (int thread = 0; thread < plan.threads; ++thread)
            client.does([&client, &plan, &storm, own = dice.child()] {
                Habits{client, plan, storm, own}.live();
            });
    }
    if (plan.calm) world.is_calm();
}

}  // namespace

Outcome run_schedule(std::uint64_t seed, const Planner& planner, Told told) {
    Dice dice{seed};
    auto plan = planner(dice);
    plan.world.seed = dice.next();
    plan.world.told = told == Told::yes;
    World world{plan.world};
    world.chronicle().note("plan", [&] { return text(plan); });
    Storm storm{world, plan, dice.child()};
    populate(world, plan, storm, dice);
    storm.begin();
    try {
        world.run_to_a_violation();
    } catch (const std::exception& error) {
        throw std::runtime_error("seed " + std::to_string(seed) + ": " + error.what());
    }
    world.settle(2 * plan.longest_ttl + 1s);
    return {.seed = seed,
            .events = world.events(),
            .holds = world.referee().holds(),
            .extensions = world.referee().extensions(),
            .violations = world.violations(),
            .schedule = world.chronicle().lines()};
}

}  // namespace redlock::sim
