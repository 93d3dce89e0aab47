#include "mutants.hpp"

#include <algorithm>

namespace redlock::sim {
namespace {

// ---- Worlds in which a kind of mistake shows soon. All are within the assumptions.

/// Nothing fails by itself; clients contend for one resource, in short rounds.
void contended(Plan& plan) {
    plan.calm = false;
    plan.faults.clear();
    plan.ambush = 0;
    plan.resources = 1;
    plan.threads = 1;
    plan.clients = 4;
    plan.turns = 6;
    plan.attempts = 3;
    plan.hazards = {};
    plan.world.weather = {.mean = 1ms};
    plan.world.backs_off = false;
    plan.works = 1;
    plan.extends = 0.3;
    plan.fencing = false;
    plan.watched = 0;
    plan.world.quarantine = 0ms;
}

void busy(Plan& plan, Dice&) {
    contended(plan);
}

void halves(Plan& plan, Dice& dice) {
    contended(plan);
    plan.world.nodes = dice.chance(0.5) ? 4 : 2;
    plan.world.round = Round::all_at_once;
}

/// Clocks at the edge of what the drift factor allows for.
void drifting(Plan& plan, Dice&) {
    contended(plan);
    plan.drift_factor = 0.1;
    plan.world.rate_error = 0.05;
    plan.works = 2;
    plan.attempts = 50;
    plan.retry_delay = 5ms;
}

/// Commands that arrive late, over connections that broke.
void late(Plan& plan, Dice&) {
    contended(plan);
    plan.world.nodes = 3;
    plan.world.weather = {
        .mean = 3ms, .slow_share = 0.2, .slow = 200ms, .breaks = 0.2, .longest_late = 500ms};
    plan.attempts = 6;
    plan.retry_delay = 10ms;
}

void late_and_long(Plan& plan, Dice& dice) {
    late(plan, dice);
    plan.works = 2;
}

/// Short holds within the long rounds of others, so that counts of many rounds meet.
void counted(Plan& plan, Dice&) {
    contended(plan);
    plan.fencing = true;
    plan.world.nodes = 3;
    plan.world.node_timeout = 200ms;
    plan.least_ttl = 800ms;
    plan.longest_ttl = 1000ms;
    plan.world.skew = 0ns;
    plan.world.weather = {
        .mean = 2ms, .slow_share = 0.3, .slow = 150ms, .breaks = 0.05, .longest_late = 300ms};
    plan.world.round = Round::all_at_once;
    plan.clients = 4;
    plan.turns = 20;
    plan.attempts = 10;
    plan.retry_delay = 10ms;
    plan.works = 0.02;
    plan.extends = 0;
}

/// Nodes lose their data, and a quarantine is what protects from it.
void forgetful(Plan& plan, Dice&) {
    contended(plan);
    plan.world.nodes = 3;
    plan.world.quarantine = plan.longest_ttl;
    plan.world.trusted = true;
    plan.world.skew = 0ns;
    plan.faults = {Fault::crash_and_forget, Fault::flush};
    plan.fault_interval = 100ms;
    plan.longest_fault = 20ms;
    plan.works = 2;
}

void going_back(Plan& plan, Dice& dice) {
    forgetful(plan, dice);
    plan.faults = {Fault::crash_and_go_back, Fault::crash_and_go_back, Fault::snapshot};
}

void forgetful_and_counted(Plan& plan, Dice& dice) {
    forgetful(plan, dice);
    plan.fencing = true;
    plan.fault_interval = 500ms;
    plan.turns = 15;
    plan.works = 0.3;
}

void going_back_and_counted(Plan& plan, Dice& dice) {
    forgetful_and_counted(plan, dice);
    plan.faults = {Fault::crash_and_go_back, Fault::crash_and_go_back, Fault::snapshot};
}

/// Rounds that take long beside the ttl, extensions in the last moment, nodes that are flushed meanwhile.
void forgetful_and_slow(Plan& plan, Dice& dice) {
    forgetful(plan, dice);
    plan.world.node_timeout = 120ms;
    plan.least_ttl = 300ms;
    plan.longest_ttl = 300ms;
    plan.drift_factor = 0;
    plan.world.rate_error = 0;
    plan.world.quarantine = 300ms;
    plan.world.round = Round::all_at_once;
    plan.world.weather = {.mean = 10ms, .slow_share = 0.3, .slow = 100ms};
    plan.faults = {Fault::flush};
    plan.fault_interval = 1s;
    plan.ambush = 0.1;
    plan.extends = 1;
    plan.last_moment = 1;
    plan.clients = 3;
    plan.turns = 30;
    plan.attempts = 10;
    plan.retry_delay = 2ms;
}

/// Holders that extend, again and again, and are paused meanwhile.
void extending(Plan& plan, Dice&) {
    contended(plan);
    plan.world.nodes = 3;
    plan.extends = 0.9;
    plan.works = 1;
    plan.attempts = 20;
    plan.retry_delay = 10ms;
    plan.hazards = {.pause = 0.02, .longest_pause = 500ms};
    plan.world.weather = {.mean = 3ms, .slow_share = 0.1, .slow = 100ms};
}

void suspended(Plan& plan, Dice& dice) {
    extending(plan, dice);
    plan.extends = 0;
}

/// Where wall clocks are set now and then.
void with_wall_clocks_set(Plan& plan, Dice& dice) {
    extending(plan, dice);
    plan.hazards = {};
    plan.faults = {Fault::set_client_clock};
    plan.fault_interval = 200ms;
    plan.longest_fault = 1s;
}

void crashing(Plan& plan, Dice&) {
    contended(plan);
    plan.hazards = {.crash = 0.01};
}

void calm(Plan& plan, Dice&) {
    contended(plan);
    plan.calm = true;
    plan.world.nodes = 3;
    plan.world.node_timeout = 20ms;
    plan.world.weather = {.mean = 3ms, .slow_share = 0.2, .slow = 100ms};
}

/// Extensions that arrive after the release.
void calm_and_extending(Plan& plan, Dice& dice) {
    calm(plan, dice);
    plan.extends = 0.9;
    plan.works = 0.3;
}

/// Locks that a watchdog extends, for several ttls.
void watched(Plan& plan) {
    contended(plan);
    plan.world.nodes = 3;
    plan.world.node_timeout = 100ms;
    plan.least_ttl = 300ms;
    plan.longest_ttl = 400ms;
    plan.attempts = 20;
    plan.retry_delay = 10ms;
    plan.watched = 1;
    plan.watched_works = 6;
    plan.limited = 0;
    plan.extends = 0;
}

/// Nodes that hang, for longer than a validity.
void watched_on_nodes_that_hang(Plan& plan, Dice&) {
    watched(plan);
    plan.faults = {Fault::freeze};
    plan.fault_interval = 150ms;
    plan.longest_fault = 2s;
}

/// Connections that have to be made anew, and take their time.
void watched_over_slow_connections(Plan& plan, Dice&) {
    watched(plan);
    plan.clients = 2;
    plan.resources = 3;
    plan.turns = 20;
    plan.watched_works = 2;
    plan.world.weather = {.mean = 5ms, .slow_share = 0.2, .slow = 50ms, .breaks = 0.05, .longest_late = 50ms};
}

/// Threads that stall, one by one.
void watched_with_stalls(Plan& plan, Dice&) {
    watched(plan);
    plan.hazards = {.longest_pause = 1s, .stall = 0.02};
}

void watched_with_a_limit(Plan& plan, Dice&) {
    watched(plan);
    plan.limited = 1;
}

}  // namespace

std::span<const Mutant> mutants() {
    static const std::vector<Mutant> all{
        {"quorum-half",
         "N/2 grants are enough",
         {Rule::one_holder},
         [](Flaws& it) { it.quorum_half = true; },
         halves},
        {"no-drift",
         "the validity takes no account of drifting clocks",
         {Rule::one_holder},
         [](Flaws& it) { it.no_drift = true; },
         drifting},
        {"one-owner",
         "all attempts of a client are signed alike",
         {Rule::one_holder},
         [](Flaws& it) { it.one_owner = true; },
         late_and_long},
        {"raise-ignores-owner",
         "the second fencing round counts where the key is not ours",
         {Rule::tokens_grow},
         [](Flaws& it) { it.raise_ignores_owner = true; },
         counted},
        {"no-second-round",
         "there is no second fencing round",
         {Rule::tokens_grow},
         [](Flaws& it) { it.no_second_round = true; },
         counted},
        {"no-quarantine",
         "nodes that have lost their data vote at once",
         {Rule::one_holder},
         [](Flaws& it) { it.no_quarantine = true; },
         forgetful},
        {"marker-without-run",
         "the marker of the quarantine comes back with old data",
         {Rule::one_holder},
         [](Flaws& it) { it.marker_without_run = true; },
         going_back},
        {"counter-without-run",
         "the counter comes back with old data",
         {Rule::tokens_grow},
         [](Flaws& it) { it.counter_without_run = true; },
         going_back_and_counted},
        {"seed-zero",
         "a missing counter begins at 0",
         {Rule::tokens_grow},
         [](Flaws& it) { it.seed_zero = true; },
         forgetful_and_counted},
        {"extend-makes-keys",
         "an extension makes missing keys anew",
         {Rule::one_holder, Rule::nothing_is_left},
         [](Flaws& it) { it.extend_makes_keys = true; },
         calm_and_extending},
        {"extend-shortens",
         "an extension with a shorter ttl shortens keys",
         {Rule::one_holder},
         [](Flaws& it) { it.extend_shortens = true; },
         extending},
        {"extend-ignores-owner",
         "an extension counts foreign keys",
         {Rule::one_holder},
         [](Flaws& it) { it.extend_ignores_owner = true; },
         forgetful_and_slow},
        {"late-confirmation",
         "an extension is accepted after the old validity has ended",
         {Rule::one_holder, Rule::lapsed_stays_lapsed, Rule::confirmed_in_time},
         [](Flaws& it) { it.late_confirmation = true; },
         extending},
        {"steady-clock",
         "the client's clock stands still while it is suspended",
         {Rule::one_holder},
         [](Flaws& it) { it.steady_clock = true; },
         suspended},
        {"wall-clock",
         "the client's clock is the wall clock",
         {Rule::one_holder, Rule::lapsed_stays_lapsed},
         [](Flaws& it) { it.wall_clock = true; },
         with_wall_clocks_set},
        {"set-without-expiry",
         "keys are set first, and given their expiry later",
         {Rule::no_deadlock},
         [](Flaws& it) { it.set_without_expiry = true; },
         crashing},
        {"release-ignores-owner",
         "a release deletes whatever key there is",
         {Rule::one_holder},
         [](Flaws& it) { it.release_ignores_owner = true; },
         busy},
        {"release-to-granters",
         "a release goes only where a grant was seen",
         {Rule::nothing_is_left},
         [](Flaws& it) { it.release_to_granters = true; },
         calm},
        {"notice-late",
         "a round of extensions goes on beyond the next notice",
         {Rule::loss_is_told},
         [](Flaws& it) { it.notice_late = true; },
         watched_on_nodes_that_hang},
        {"extend-after-release",
         "a release does not wait for the extension that is under way",
         {Rule::over_with_release},
         [](Flaws& it) { it.extend_after_release = true; },
         watched_over_slow_connections},
        {"commit-without-look",
         "an extension counts from the end of its round, not from when it is settled",
         {Rule::lapsed_stays_lapsed, Rule::one_holder},
         [](Flaws& it) { it.commit_without_look = true; },
         watched_with_stalls},
        {"watch-for-ever",
         "the longest hold is ignored",
         {Rule::hold_is_limited},
         [](Flaws& it) { it.watch_for_ever = true; },
         watched_with_a_limit},
    };
    return all;
}

const Mutant* find_mutant(std::string_view name) {
    const auto all = mutants();
    const auto it = std::ranges::find(all, name, &Mutant::name);
    return it == all.end() ? nullptr : &*it;
}

Planner without_flaw(const Mutant& mutant) {
    return [&mutant](Dice& dice) {
        auto plan = any_plan(dice);
        mutant.narrow(plan, dice);
        return plan;
    };
}

Planner with_flaw(const Mutant& mutant) {
    return [&mutant](Dice& dice) {
        auto plan = without_flaw(mutant)(dice);
        mutant.make(plan.world.flaws);
        return plan;
    };
}

Planner with_flaw_anywhere(const Mutant& mutant) {
    return [&mutant](Dice& dice) {
        auto plan = any_plan(dice);
        mutant.make(plan.world.flaws);
        return plan;
    };
}

}  // namespace redlock::sim
