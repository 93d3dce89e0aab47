#include "plan.hpp"

#include <array>
#include <cstdio>

namespace redlock::sim {
namespace {

template <class Span>
milliseconds whole(Span span) {
    return std::chrono::duration_cast<milliseconds>(span);
}

void choose_sizes(Plan& plan, Rng& rng) {
    plan.world.nodes = static_cast<std::size_t>(rng.pick(std::array{1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 7}));
    plan.clients = rng.between(2, 5);
    plan.threads = rng.chance(0.2) ? 2 : 1;
    plan.resources = rng.chance(0.3) ? 3 : 1;
    plan.turns = rng.between(3, 8);
}

void choose_times(Plan& plan, Rng& rng) {
    plan.world.node_timeout = whole(rng.chance(0.2) ? rng.between(60ms, 200ms) : rng.between(5ms, 60ms));
    plan.least_ttl = whole(3 * plan.world.node_timeout + rng.between(20ms, 300ms));
    plan.longest_ttl = plan.least_ttl + whole(rng.about(500ms));
    plan.drift_factor = rng.pick(std::array{0.01, 0.01, 0.02, 0.1});
    // Two clocks drift apart at up to twice the error of one. Half of the remaining drift allowance is used
    // for steps.
    plan.world.rate_error = plan.drift_factor / (rng.chance(0.5) ? 2 : 4);
    plan.world.round = rng.chance(0.5) ? Round::sequential : Round::all_at_once;
    plan.attempts = rng.between(1, 4);
    plan.retry_delay = whole(rng.between(2ms, 100ms));
    plan.works = rng.chance(0.3) ? rng.between(0.01, 0.1) : rng.between(0.1, 1.5);
    plan.extends = rng.between(0.0, 0.8);
    if (rng.chance(0.5)) plan.fair = rng.between(0.3, 1.0);
}

void choose_watch(Plan& plan, Rng& rng) {
    if (rng.chance(0.5)) return;
    plan.watched = rng.between(0.2, 1.0);
    plan.watched_works = rng.between(0.5, 6.0);
    plan.limited = rng.chance(0.3) ? 0.5 : 0;
}

void choose_conditions(Plan& plan, Rng& rng) {
    auto& conditions = plan.world.conditions;
    conditions.mean = rng.chance(0.5) ? rng.between(100us, 2ms) : rng.between(1ms, 20ms);
    if (rng.chance(0.6)) {
        conditions.slow_share = rng.between(0.01, 0.3);
        conditions.slow = rng.between(10ms, nanoseconds{2 * plan.longest_ttl});
    }
    if (plan.calm) return;
    if (rng.chance(0.6)) conditions.breaks = rng.between(0.0, 0.1);
    conditions.longest_late = rng.between(0ms, nanoseconds{2 * plan.longest_ttl});
}

void choose_hazards(Plan& plan, Rng& rng) {
    if (rng.chance(0.7)) plan.hazards.pause = rng.between(0.0, 0.02);
    plan.hazards.longest_pause = rng.between(10ms, nanoseconds{2 * plan.longest_ttl});
    const bool threads = plan.threads > 1 || plan.watched > 0;
    if (threads && rng.chance(0.5)) plan.hazards.stall = rng.between(0.0, 0.02);
    if (!plan.calm && rng.chance(0.3)) plan.hazards.crash = 0.002;
}

/// A node may lose data only if a quarantine keeps it from voting afterwards. Tokens are guaranteed to grow
/// across restarts only with a quarantine, and only if the wall clocks differ by less than the quarantine.
void choose_faults(Plan& plan, Rng& rng) {
    const bool quarantine = rng.chance(0.6);
    if (quarantine) plan.world.quarantine = plan.longest_ttl + whole(rng.about(200ms));
    plan.world.trusted = !quarantine || rng.chance(0.9);
    plan.world.skew =
        quarantine ? whole(plan.world.quarantine * rng.between(0.0, 0.8)) : whole(rng.between(0ms, 1h));
    if (plan.calm) return;
    plan.faults = {Fault::cut, Fault::pause, Fault::freeze, Fault::set_client_clock, Fault::forget_scripts};
    if (rng.chance(0.5)) plan.faults.push_back(Fault::crash_client);
    if (quarantine || !plan.fencing) plan.faults.push_back(Fault::crash_and_keep);
    if (quarantine)
        plan.faults.insert(plan.faults.end(),
                           {Fault::crash_and_forget, Fault::crash_and_go_back, Fault::snapshot,
                            Fault::promote_again, Fault::flush, Fault::evict_marker});
    if (plan.world.rate_error <= plan.drift_factor / 4 && rng.chance(0.3)) {
        plan.faults.push_back(Fault::step_clock);
        plan.steps_in_all = whole(plan.least_ttl * plan.drift_factor / 2);
    }
    if (rng.chance(0.3)) plan.fault_before_verb = rng.between(0.0, 0.3);
    plan.fault_interval = rng.between(20ms, 500ms);
    plan.longest_fault = rng.between(20ms, 2 * nanoseconds{plan.longest_ttl});
}

}  // namespace

Plan any_plan(Rng& rng) {
    Plan plan;
    plan.calm = rng.chance(0.15);
    plan.fencing = rng.chance(0.5);
    choose_sizes(plan, rng);
    choose_times(plan, rng);
    choose_watch(plan, rng);
    choose_conditions(plan, rng);
    choose_hazards(plan, rng);
    choose_faults(plan, rng);
    if (rng.chance(0.3)) plan.shared = rng.between(0.2, 0.9);
    if (rng.chance(0.2)) plan.slots = rng.between(1, 3);
    if (rng.chance(0.3)) plan.noted = rng.between(0.2, 1.0);
    if (rng.chance(0.3)) plan.kept = rng.between(0.2, 1.0);
    return plan;
}

std::string text(const Plan& plan) {
    char line[400];
    std::snprintf(
        line, sizeof line,
        "%zu nodes, %d clients of %d threads, %d resources, ttl %lld to %lld ms, node_timeout %lld ms, %s, "
        "drift factor %g, rates up to %g, quarantine %lld ms, %s%s%.0f%% watched, %.0f%% fair, %.0f%% "
        "shared, "
        "%.0f%% kept, %d slots, %zu kinds of faults",
        plan.world.nodes, plan.clients, plan.threads, plan.resources,
        static_cast<long long>(plan.least_ttl.count()), static_cast<long long>(plan.longest_ttl.count()),
        static_cast<long long>(plan.world.node_timeout.count()),
        plan.world.round == Round::sequential ? "one after the other" : "all at once", plan.drift_factor,
        plan.world.rate_error, static_cast<long long>(plan.world.quarantine.count()),
        plan.fencing ? "fencing, " : "", plan.calm ? "calm, " : "", 100 * plan.watched, 100 * plan.fair,
        100 * plan.shared, 100 * plan.kept, plan.slots, plan.faults.size());
    return line;
}

}  // namespace redlock::sim
