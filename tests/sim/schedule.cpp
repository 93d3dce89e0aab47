#include "schedule.hpp"

#include "at_work.hpp"
#include "fault_injector.hpp"
#include "leader_workload.hpp"
#include "suspension_workload.hpp"
#include "workload.hpp"
#include "world.hpp"

#include <stdexcept>
#include <stop_token>

namespace redlock::sim {
namespace {

void populate(World& world, const Plan& plan, FaultInjector& faults, Rng& rng) {
    const std::stop_source end;  // of the other clients, when the systematic one has ended
    for (int number = 1; number <= plan.clients; ++number) {
        auto& client = world.client("client " + std::to_string(number));
        client.process().meet(plan.hazards);
        for (int loop = 0; plan.loops && loop < plan.loops_each; ++loop)
            plan.systematic&& number == 1 ? client.use_loop(rng.child(), 0, 0)
                                          : client.use_loop(rng.child(), plan.disturbs, plan.restarts);
        const bool is_systematic = plan.systematic && number == 1;
        if (is_systematic)
            client.does([&client, &plan, end, own = rng.child()]() mutable {
                SuspensionWorkload{client, plan, own}.run();
                end.request_stop();
            });
        // In a calm world, the checks of a leader require that the process makes no other attempts.
        if (is_systematic && (plan.leading || rng.chance(0.7))) continue;
        for (int thread = 0; thread < plan.threads; ++thread)
            client.does([&client, &plan, &faults, stop = end.get_token(), own = rng.child()] {
                if (plan.leading) return LeaderWorkload{client, plan, own}.run(stop);
                Workload{client, plan, faults, own}.run(stop);
            });
    }
    if (plan.calm) world.is_calm();
    if (plan.queueing)
        world.is_queueing(plan.retry_delay, static_cast<std::size_t>(plan.clients * plan.threads));
}

/// Returns the names that locks, semaphores and leaders of these worlds use.
std::vector<std::string> names_in(const Plan& plan) {
    std::vector<std::string> names{leadership};
    for (int number = 1; number <= plan.resources; ++number) names.push_back(resource_name(plan, number));
    for (int slot = 0; slot < plan.slots; ++slot) names.push_back("{s}:slot:" + std::to_string(slot));
    return names;
}

/// Nothing fails any more. Each client makes a few rounds, because a node that has failed is asked again by a
/// round. If loops were shut down, some of their releases may be left for the destructor of the RedisNodes.
void heal(World& world, const Plan& plan) {
    if (!world.violations().empty()) return;
    world.network().set_conditions({.mean = plan.world.conditions.mean});
    // While a slot is being moved, a release of readers, which has two keys, may have to wait.
    if (plan.world.cluster) world.finish_move();
    for (const auto& it : world.clients()) {
        auto& client = *it;
        if (!client.process().alive()) continue;
        client.process().meet({});
        client.leave_loops_alone();
        client.does([&client, &plan] {
            for (int i = 0; i < 4; ++i) {
                CheckedLock lock{client, "healed", {.ttl = plan.longest_ttl, .retry = {.attempts = 1}}};
                if (lock.acquire()) (void)lock.release();
                client.sleep(2s);
            }
            if (plan.restarts > 0) client.network().close();
        });
    }
    world.run_while_busy();
    for (const auto& client : world.clients())
        for (const auto& owner : client->network().owners())
            world.checker().expect_gone_at_the_end(client->process(), owner, names_in(plan));
    world.checker().check_over();
}

}  // namespace

Outcome run_schedule(std::uint64_t seed, const Preset* preset, Logging logging) {
    Rng rng{seed};
    auto plan = any_plan(rng);
    plan.number = seed;
    if (preset) preset->apply(plan);
    plan.world.seed = rng.next();
    plan.world.logged = logging == Logging::yes;
    World world{plan.world};
    world.log().note("plan", [&] { return text(plan); });
    FaultInjector faults{world, plan, rng.child()};
    populate(world, plan, faults, rng);
    faults.begin();
    try {
        plan.heals ? world.run_while_busy() : world.run_to_a_violation();
    } catch (const std::exception& error) {
        throw std::runtime_error("seed " + std::to_string(seed) + ": " + error.what());
    }
    if (plan.heals) heal(world, plan);
    world.settle(2 * plan.longest_ttl + 1s);
    return {.seed = seed,
            .events = world.events(),
            .holds = world.checker().holds(),
            .extensions = world.checker().extensions(),
            .disturbances = world.checker().disturbances(),
            .violations = world.violations(),
            .schedule = world.log().lines()};
}

}  // namespace redlock::sim
