#include "schedule.hpp"

#include "fault_injector.hpp"
#include "leader_workload.hpp"
#include "workload.hpp"
#include "world.hpp"

#include <stdexcept>
#include <string>

namespace redlock::sim {
namespace {

void populate(World& world, const Plan& plan, FaultInjector& faults, Rng& rng) {
    for (int number = 1; number <= plan.clients; ++number) {
        auto& client = world.client("client " + std::to_string(number));
        client.process().meet(plan.hazards);
        for (int thread = 0; thread < plan.threads; ++thread)
            client.does([&client, &plan, &faults, own = rng.child()] {
                if (plan.leading) return LeaderWorkload{client, plan, own}.run();
                Workload{client, plan, faults, own}.run();
            });
    }
    if (plan.calm) world.is_calm();
    if (plan.queueing) world.is_queueing(plan.retry_delay);
}

}  // namespace

Outcome run_schedule(std::uint64_t seed, const Preset* preset, Logging logging) {
    Rng rng{seed};
    auto plan = any_plan(rng);
    if (preset) preset->apply(plan);
    plan.world.seed = rng.next();
    plan.world.logged = logging == Logging::yes;
    World world{plan.world};
    world.log().note("plan", [&] { return text(plan); });
    FaultInjector faults{world, plan, rng.child()};
    populate(world, plan, faults, rng);
    faults.begin();
    try {
        world.run_to_a_violation();
    } catch (const std::exception& error) {
        throw std::runtime_error("seed " + std::to_string(seed) + ": " + error.what());
    }
    world.settle(2 * plan.longest_ttl + 1s);
    return {.seed = seed,
            .events = world.events(),
            .holds = world.checker().holds(),
            .extensions = world.checker().extensions(),
            .violations = world.violations(),
            .schedule = world.log().lines()};
}

}  // namespace redlock::sim
