#include "plan.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace redlock::sim {
namespace {

template <class Span>
milliseconds whole(Span span) {
    return std::chrono::duration_cast<milliseconds>(span);
}

void choose_sizes(Plan& plan, Dice& dice) {
    plan.world.nodes = static_cast<std::size_t>(dice.pick(std::array{1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 7}));
    plan.clients = dice.between(2, 5);
    plan.threads = dice.chance(0.2) ? 2 : 1;
    plan.resources = dice.chance(0.3) ? 3 : 1;
    plan.turns = dice.between(3, 8);
}

void choose_times(Plan& plan, Dice& dice) {
    plan.world.node_timeout = whole(dice.chance(0.2) ? dice.between(60ms, 200ms) : dice.between(5ms, 60ms));
    plan.least_ttl = whole(3 * plan.world.node_timeout + dice.between(20ms, 300ms));
    plan.longest_ttl = plan.least_ttl + whole(dice.about(500ms));
    plan.drift_factor = dice.pick(std::array{0.01, 0.01, 0.02, 0.1});
    // Two clocks go apart by twice the error of one; half of the rest is left for steps.
    plan.world.rate_error = plan.drift_factor / (dice.chance(0.5) ? 2 : 4);
    plan.world.round = dice.chance(0.5) ? Round::sequential : Round::all_at_once;
    plan.attempts = dice.between(1, 4);
    plan.retry_delay = whole(dice.between(2ms, 100ms));
    plan.works = dice.chance(0.3) ? dice.between(0.01, 0.1) : dice.between(0.1, 1.5);
    plan.extends = dice.between(0.0, 0.8);
}

void choose_watch(Plan& plan, Dice& dice) {
    if (dice.chance(0.5)) return;
    plan.watched = dice.between(0.2, 1.0);
    plan.watched_works = dice.between(0.5, 6.0);
    plan.limited = dice.chance(0.3) ? 0.5 : 0;
}

void choose_weather(Plan& plan, Dice& dice) {
    auto& weather = plan.world.weather;
    weather.mean = dice.chance(0.5) ? dice.between(100us, 2ms) : dice.between(1ms, 20ms);
    if (dice.chance(0.6)) {
        weather.slow_share = dice.between(0.01, 0.3);
        weather.slow = dice.between(10ms, nanoseconds{2 * plan.longest_ttl});
    }
    if (plan.calm) return;
    if (dice.chance(0.6)) weather.breaks = dice.between(0.0, 0.1);
    weather.longest_late = dice.between(0ms, nanoseconds{2 * plan.longest_ttl});
}

void choose_hazards(Plan& plan, Dice& dice) {
    if (dice.chance(0.7)) plan.hazards.pause = dice.between(0.0, 0.02);
    plan.hazards.longest_pause = dice.between(10ms, nanoseconds{2 * plan.longest_ttl});
    const bool threads = plan.threads > 1 || plan.watched > 0;
    if (threads && dice.chance(0.5)) plan.hazards.stall = dice.between(0.0, 0.02);
    if (!plan.calm && dice.chance(0.3)) plan.hazards.crash = 0.002;
}

/// A node may forget only where a quarantine keeps it from voting; tokens are promised over restarts only
/// there, and only where the wall clocks are less than a quarantine apart.
void choose_faults(Plan& plan, Dice& dice) {
    const bool quarantine = dice.chance(0.6);
    if (quarantine) plan.world.quarantine = plan.longest_ttl + whole(dice.about(200ms));
    plan.world.trusted = !quarantine || dice.chance(0.9);
    plan.world.skew =
        quarantine ? whole(plan.world.quarantine * dice.between(0.0, 0.8)) : whole(dice.between(0ms, 1h));
    if (plan.calm) return;
    plan.faults = {Fault::cut, Fault::pause, Fault::freeze, Fault::set_client_clock, Fault::forget_scripts};
    if (dice.chance(0.5)) plan.faults.push_back(Fault::crash_client);
    if (quarantine || !plan.fencing) plan.faults.push_back(Fault::crash_and_keep);
    if (quarantine)
        plan.faults.insert(plan.faults.end(), {Fault::crash_and_forget, Fault::crash_and_go_back,
                                               Fault::snapshot, Fault::flush, Fault::evict_marker});
    if (plan.world.rate_error <= plan.drift_factor / 4 && dice.chance(0.3)) {
        plan.faults.push_back(Fault::step_clock);
        plan.steps_in_all = whole(plan.least_ttl * plan.drift_factor / 2);
    }
    if (dice.chance(0.3)) plan.ambush = dice.between(0.0, 0.3);
    plan.fault_interval = dice.between(20ms, 500ms);
    plan.longest_fault = dice.between(20ms, 2 * nanoseconds{plan.longest_ttl});
}

}  // namespace

Plan any_plan(Dice& dice) {
    Plan plan;
    plan.calm = dice.chance(0.15);
    plan.fencing = dice.chance(0.5);
    choose_sizes(plan, dice);
    choose_times(plan, dice);
    choose_watch(plan, dice);
    choose_weather(plan, dice);
    choose_hazards(plan, dice);
    choose_faults(plan, dice);
    return plan;
}

std::string text(const Plan& plan) {
    char line[400];
    std::snprintf(
        line, sizeof line,
        "%zu nodes, %d clients of %d threads, %d resources, ttl %lld to %lld ms, budget %lld ms, %s, "
        "drift factor %g, rates up to %g, quarantine %lld ms, %s%s%.0f%% watched, %zu kinds of faults",
        plan.world.nodes, plan.clients, plan.threads, plan.resources,
        static_cast<long long>(plan.least_ttl.count()), static_cast<long long>(plan.longest_ttl.count()),
        static_cast<long long>(plan.world.node_timeout.count()),
        plan.world.round == Round::sequential ? "one after the other" : "all at once", plan.drift_factor,
        plan.world.rate_error, static_cast<long long>(plan.world.quarantine.count()),
        plan.fencing ? "fencing, " : "", plan.calm ? "calm, " : "", 100 * plan.watched, plan.faults.size());
    return line;
}

}  // namespace redlock::sim
