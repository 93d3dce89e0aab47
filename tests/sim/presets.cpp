#include "presets.hpp"

#include "suspension_workload.hpp"

#include <algorithm>

namespace redlock::sim {
namespace {

// ---- Worlds that expose one kind of fault quickly. All of them are within the assumptions of the protocol.

void contended(Plan& plan) {
    plan.calm = false;
    plan.faults.clear();
    plan.fault_before_verb = 0;
    plan.resources = 1;
    plan.threads = 1;
    plan.clients = 4;
    plan.turns = 6;
    plan.attempts = 3;
    plan.hazards = {};
    plan.world.conditions = {.mean = 1ms};
    plan.works = 1;
    plan.extends = 0.3;
    plan.fencing = false;
    plan.watched = 0;
    plan.shared = 0;
    plan.fair = 0;
    plan.slots = 0;
    plan.noted = 0;
    plan.kept = 0;
    plan.world.quarantine = 0ms;
}

void halves(Plan& plan) {
    contended(plan);
    plan.world.nodes = plan.world.nodes > 3 ? 4 : 2;
    plan.world.round = Round::all_at_once;
}

void drifting(Plan& plan) {
    contended(plan);
    plan.drift_factor = 0.1;
    plan.world.rate_error = 0.05;
    plan.works = 2;
    plan.attempts = 50;
    plan.retry_delay = 5ms;
}

void late(Plan& plan) {
    contended(plan);
    plan.world.nodes = 3;
    plan.world.conditions = {
        .mean = 3ms, .slow_share = 0.2, .slow = 200ms, .breaks = 0.2, .longest_late = 500ms};
    plan.attempts = 6;
    plan.retry_delay = 10ms;
    plan.works = 2;
}

/// Short holds during long rounds of other clients, so that the counts of many rounds meet.
void counted(Plan& plan) {
    contended(plan);
    plan.fencing = true;
    plan.world.nodes = 3;
    plan.world.node_timeout = 200ms;
    plan.least_ttl = 800ms;
    plan.longest_ttl = 1000ms;
    plan.world.skew = 0ns;
    plan.world.conditions = {
        .mean = 2ms, .slow_share = 0.3, .slow = 150ms, .breaks = 0.05, .longest_late = 300ms};
    plan.world.round = Round::all_at_once;
    plan.clients = 4;
    plan.turns = 20;
    plan.attempts = 10;
    plan.retry_delay = 10ms;
    plan.works = 0.02;
    plan.extends = 0;
}

void forgetful(Plan& plan) {
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

void going_back(Plan& plan) {
    forgetful(plan);
    plan.faults = {Fault::crash_and_go_back, Fault::crash_and_go_back, Fault::snapshot};
}

void failing_over(Plan& plan) {
    forgetful(plan);
    plan.faults = {Fault::promote_again, Fault::promote_again, Fault::snapshot};
}

void forgetful_and_counted(Plan& plan) {
    forgetful(plan);
    plan.fencing = true;
    plan.fault_interval = 500ms;
    plan.turns = 15;
    plan.works = 0.3;
}

void failing_over_and_counted(Plan& plan) {
    forgetful_and_counted(plan);
    plan.faults = {Fault::promote_again, Fault::promote_again, Fault::snapshot};
}

void extending(Plan& plan) {
    contended(plan);
    plan.world.nodes = 3;
    plan.extends = 0.9;
    plan.works = 1;
    plan.attempts = 20;
    plan.retry_delay = 10ms;
    plan.hazards = {.pause = 0.02, .longest_pause = 500ms};
    plan.world.conditions = {.mean = 3ms, .slow_share = 0.1, .slow = 100ms};
}

void suspended(Plan& plan) {
    extending(plan);
    plan.extends = 0;
}

void with_wall_clocks_set(Plan& plan) {
    extending(plan);
    plan.hazards = {};
    plan.faults = {Fault::set_client_clock};
    plan.fault_interval = 200ms;
    plan.longest_fault = 1s;
}

void crashing(Plan& plan) {
    contended(plan);
    plan.hazards = {.crash = 0.01};
}

void calm(Plan& plan) {
    contended(plan);
    plan.calm = true;
    plan.world.nodes = 3;
    plan.world.node_timeout = 20ms;
    plan.world.conditions = {.mean = 3ms, .slow_share = 0.2, .slow = 100ms};
}

/// Nodes forget their scripts, and every reply comes in time. A script that is unknown by its digest is sent
/// whole.
void calm_without_scripts(Plan& plan) {
    calm(plan);
    plan.faults = {Fault::forget_scripts};
    plan.fault_interval = 20ms;
    plan.world.node_timeout = 50ms;
    plan.least_ttl = 300ms;
    plan.longest_ttl = 400ms;
    plan.world.conditions = {.mean = 1ms};
    plan.clients = 2;
}

/// Extensions that arrive after the release.
void calm_and_extending(Plan& plan) {
    calm(plan);
    plan.extends = 0.9;
    plan.works = 0.3;
}

/// The same, with a minimum hold time that is much shorter than the ttl.
void resting(Plan& plan) {
    calm_and_extending(plan);
    plan.least_ttl = plan.longest_ttl = 5s;
    plan.turns = 3;
    plan.attempts = 50;
    plan.retry_delay = 100ms;
    plan.works = 0.02;
    plan.kept = 1;
}

/// Semaphores of two slots, contended by more clients, on nodes that split the votes.
void slots(Plan& plan) {
    contended(plan);
    plan.world.nodes = 5;
    plan.world.node_timeout = 50ms;
    plan.world.round = Round::all_at_once;
    plan.world.conditions = {.mean = 2ms, .slow_share = 0.2, .slow = 60ms};
    plan.least_ttl = 300ms;
    plan.longest_ttl = 400ms;
    plan.clients = 6;
    plan.turns = 20;
    plan.attempts = 20;
    plan.retry_delay = 10ms;
    plan.slots = 2;
}

/// Locks that a watchdog extends for several ttls.
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

/// Nodes that are frozen for longer than a validity.
void watched_on_nodes_that_hang(Plan& plan) {
    watched(plan);
    plan.faults = {Fault::freeze};
    plan.fault_interval = 150ms;
    plan.longest_fault = 2s;
}

/// Connections that break, and take long to be replaced.
void watched_over_slow_connections(Plan& plan) {
    watched(plan);
    plan.clients = 2;
    plan.resources = 3;
    plan.turns = 20;
    plan.watched_works = 2;
    plan.world.conditions = {
        .mean = 5ms, .slow_share = 0.2, .slow = 50ms, .breaks = 0.05, .longest_late = 50ms};
}

/// Threads that stall one by one.
void watched_with_stalls(Plan& plan) {
    watched(plan);
    plan.hazards = {.longest_pause = 1s, .stall = 0.02};
}

/// The same, with holders that extend by hand as well.
void watched_by_hand_with_stalls(Plan& plan) {
    watched_with_stalls(plan);
    plan.extends = 1;
}

void watched_with_a_limit(Plan& plan) {
    watched(plan);
    plan.limited = 1;
}

/// Locks that queue and are handed over again and again.
void queueing(Plan& plan) {
    contended(plan);
    plan.calm = true;
    plan.queueing = true;
    plan.fair = 1;
    plan.world.node_timeout = 50ms;
    plan.world.conditions = {.mean = 100us};
    plan.world.rate_error = 0;
    plan.least_ttl = 300ms;
    plan.longest_ttl = 300ms;
    plan.clients = 6;
    plan.turns = 20;
    plan.attempts = 50;
    plan.retry_delay = 20ms;
    plan.works = 0.3;
    plan.extends = 0;
}

/// The same among clients and nodes that fail, with or without fencing.
void queueing_among_faults(Plan& plan) {
    const bool fencing = plan.fencing;
    queueing(plan);
    plan.calm = false;
    plan.queueing = false;
    plan.fencing = fencing;
    plan.faults = {Fault::cut, Fault::pause, Fault::freeze, Fault::crash_client, Fault::forget_scripts};
    plan.fault_interval = 200ms;
    plan.longest_fault = 500ms;
    plan.works = 1;
}

/// Readers and exclusive locks, with short and long ttls.
void sharing(Plan& plan) {
    extending(plan);
    plan.shared = 0.7;
    plan.longest_ttl = 4 * plan.least_ttl;
    plan.clients = 5;
    plan.extends = 0.5;
}

/// A leader that works for several ttls among clients and nodes that fail.
void leading(Plan& plan) {
    watched(plan);
    plan.leading = true;
    plan.fair = 0.2;
    plan.faults = {Fault::cut, Fault::pause, Fault::freeze, Fault::crash_client};
    plan.fault_interval = 100ms;
    plan.longest_fault = 1s;
}

// ---- Worlds of event loops, in which many operations share a connection.

void loops(Plan& plan) {
    plan.loops = true;
    plan.disturbs = 0.01;
    plan.restarts = 0.0005;
    plan.threads *= 6;
    plan.resources *= 2;
    plan.world.conditions.parts = plan.calm ? 0 : 0.05;
    plan.hazards.crash /= 6;
    plan.hazards.pause /= 6;
    plan.hazards.stall /= 6;
}

void calm_loops(Plan& plan) {
    calm(plan);
    loops(plan);
}

/// Connections break, in the middle of a write, too. Keys live so long that one that is left is found.
void breaking_loops(Plan& plan) {
    contended(plan);
    loops(plan);
    plan.heals = true;
    plan.restarts = 0;
    plan.disturbs = 0.03;
    plan.world.conditions = {.mean = 1ms, .breaks = 0.01, .parts = 0.1};
    plan.least_ttl = plan.longest_ttl = 10min;
    plan.resources = 4;
    plan.rests = plan.works = 0.0002;
    plan.lapses = 0;
    plan.extends = 0.3;
    plan.last_moment = 0;
}

/// Nodes freeze, crash and forget scripts, so that connections drain and are replaced while others use them.
void hanging_loops(Plan& plan) {
    contended(plan);
    loops(plan);
    plan.world.node_timeout = 20ms;
    plan.world.conditions = {.mean = 1ms, .slow_share = 0.1, .slow = 60ms, .breaks = 0.005, .parts = 0.1};
    plan.faults = {Fault::freeze, Fault::cut, Fault::forget_scripts, Fault::crash_and_keep};
    plan.fault_interval = 50ms;
    plan.longest_fault = 200ms;
    plan.watched = 0.3;
    plan.fair = 0.3;
    plan.rests = 0.1;
    plan.turns = 10;
}

/// Locks of event loops that queue, more than have a turn at a time.
void queueing_loops(Plan& plan) {
    queueing(plan);
    loops(plan);
    plan.disturbs = plan.restarts = 0;
    plan.clients = 2;
    plan.threads = 12;
    plan.turns = 8;
}

/// Several event loops of each process, which keep releases for one another.
void several_loops(Plan& plan) {
    loops(plan);
    plan.loops_each = 3;
    plan.restarts = 0.002;
}

/// One operation of an event loop, which is disturbed at each suspension in turn.
void systematic_loops(Plan& plan) {
    contended(plan);
    plan.loops = plan.systematic = true;
    plan.disturbs = 0.01;
    plan.restarts = 0.0005;
    prepare(plan, SuspensionCase::of(plan.number));
}

/// Leaders of event loops, whose election may take so long that hardly the margin is left.
void leading_loops(Plan& plan) {
    leading(plan);
    loops(plan);
    plan.clients = 3;
    plan.threads = 2;
    plan.disturbs = 0.05;
    plan.restarts = 0.002;
    plan.world.conditions = {.mean = 1ms, .slow_share = 0.1, .slow = 80ms, .parts = 0.05};
}

/// One leader for each event loop. The keys live for so long that a key which was not released is found.
void calm_leading_loops(Plan& plan) {
    leading(plan);
    plan.calm = true;
    loops(plan);
    plan.faults.clear();
    plan.threads = 1;
    plan.fair = 0;
    plan.disturbs = 0.1;
    plan.restarts = 0.01;
    plan.heals = true;
    plan.least_ttl = plan.longest_ttl = 10min;
    plan.retry_delay = 100ms;
    plan.terms = 0.001;
    plan.world.conditions = {.mean = 3ms, .slow_share = 0.2, .slow = 20ms};
}

// ---- Worlds of threads that share connections.

/// Connections break. Keys live so long that one that is left is found.
void breaking_threads(Plan& plan) {
    breaking_loops(plan);
    plan.loops = false;
    plan.disturbs = 0;
    plan.world.processors = 2;
}

/// Nodes freeze, crash and forget scripts, and threads are suspended while others wait for them.
void hanging_threads(Plan& plan) {
    hanging_loops(plan);
    plan.loops = false;
    plan.disturbs = plan.restarts = 0;
    plan.world.processors = 2;
    plan.hazards = {.pause = 0.0005, .longest_pause = 500ms, .stall = 0.0005, .crash = 0.0001};
    plan.faults.push_back(Fault::pause);
}

// ---- Worlds whose only node is a Redis Cluster of two servers, between which all slots are moved. Their
// wall clocks agree, because a reader ends at an instant of the wall clock of the server that has let it in.

void in_cluster(Plan& plan) {
    plan.world.cluster = true;
    plan.world.nodes = 2;
    plan.world.skew = 0ns;
    plan.world.trusted = false;
    plan.world.quarantine = 0ms;
    plan.calm = plan.fencing = false;
    plan.fair = 0;
    plan.faults.push_back(Fault::move_slots);
    plan.fault_interval = 20ms;
    plan.fault_before_verb = 0.1;
}

/// Keys live so long that one that is left is found.
void moving_threads(Plan& plan) {
    breaking_threads(plan);
    plan.shared = 0.3;
    plan.noted = 0.3;
    plan.threads = 3;
    in_cluster(plan);
}

void moving_loops(Plan& plan) {
    breaking_loops(plan);
    plan.shared = 0.3;
    plan.restarts = 0.001;
    in_cluster(plan);
}

/// The servers freeze and crash as well, and watchdogs extend the locks.
void moving_and_hanging(Plan& plan) {
    hanging_loops(plan);
    in_cluster(plan);
}

void systematic_moves(Plan& plan) {
    contended(plan);
    plan.loops = plan.systematic = true;
    prepare(plan, SuspensionCase::in_cluster(plan.number));
    in_cluster(plan);
    if (plan.heals) plan.faults.clear();
    plan.fault_before_verb = 0;
}

/// Worlds outside of the assumptions of the protocol. Each must violate an invariant.
void without_drift(Plan& plan) {
    drifting(plan);
    plan.drift_factor = 0;
}

void without_quarantine(Plan& plan) {
    forgetful(plan);
    plan.world.quarantine = 0ms;
}

void with_a_steady_clock(Plan& plan) {
    suspended(plan);
    plan.world.client_clock = ClientClock::steady;
}

void with_a_wall_clock(Plan& plan) {
    with_wall_clocks_set(plan);
    plan.world.client_clock = ClientClock::wall;
}

}  // namespace

std::span<const Preset> presets() {
    static const std::vector<Preset> all{
        {"any", "any world within the assumptions", [](Plan&) {}},
        {"contended", "clients contend for one resource, in short rounds", contended},
        {"halves", "an even number of nodes", halves},
        {"drifting", "clocks at the edge of what the drift factor allows for", drifting},
        {"late", "commands that arrive late, over connections that broke", late},
        {"counted", "counts of many rounds meet", counted},
        {"forgetful", "nodes lose their data, with a quarantine", forgetful},
        {"going-back", "nodes come back with old data, with a quarantine", going_back},
        {"failing-over", "masters are replicas for a while, with a quarantine", failing_over},
        {"forgetful-counted", "forgetful, with fencing", forgetful_and_counted},
        {"failing-over-counted", "failing-over, with fencing", failing_over_and_counted},
        {"extending", "holders that extend again and again, and are paused", extending},
        {"suspended", "holders that are paused", suspended},
        {"wall-clocks-set", "wall clocks of clients are set", with_wall_clocks_set},
        {"crashing", "clients that crash", crashing},
        {"calm", "no connection and no node fails", calm},
        {"calm-forgetting", "calm, but scripts are forgotten", calm_without_scripts},
        {"calm-extending", "calm, with extensions", calm_and_extending},
        {"slots", "semaphores of two slots", slots},
        {"resting", "calm-extending, of resources that are kept for a minimum hold time", resting},
        {"watched-hanging", "a watchdog over nodes that hang", watched_on_nodes_that_hang},
        {"watched-slow", "a watchdog over slow connections", watched_over_slow_connections},
        {"watched-stalls", "a watchdog and threads that stall", watched_with_stalls},
        {"watched-by-hand", "watched-stalls, with extensions by hand", watched_by_hand_with_stalls},
        {"watched-limit", "a watchdog with a longest hold", watched_with_a_limit},
        {"sharing", "readers beside others", sharing},
        {"queueing", "locks that wait in a queue, where nothing fails", queueing},
        {"queueing-faults", "locks that wait in a queue, among faults", queueing_among_faults},
        {"leading", "clients that elect a leader, among faults", leading},
        {"loops", "any world of event loops, whose operations share connections", loops},
        {"loops-breaking", "event loops whose connections break, and keys that live long", breaking_loops},
        {"loops-hanging", "event loops and nodes that hang, crash and forget", hanging_loops},
        {"loops-queueing", "event loops with locks that queue, where nothing fails", queueing_loops},
        {"loops-calm", "event loops where no connection and no node fails", calm_loops},
        {"loops-several", "loops, with several event loops in each process", several_loops},
        {"loops-systematic", "one operation, disturbed at each suspension in turn", systematic_loops},
        {"loops-leading", "leaders in event loops, among faults", leading_loops},
        {"loops-leading-calm", "leaders in event loops, where nothing fails", calm_leading_loops},

        {"threads-breaking", "threads that share connections, which break", breaking_threads},
        {"threads-hanging", "threads that share connections, among faults", hanging_threads},

        {"moving", "threads and a Redis Cluster whose slots are moved", moving_threads},
        {"loops-moving", "event loops and a Redis Cluster whose slots are moved", moving_loops},
        {"moving-hanging", "loops-moving, with servers that hang", moving_and_hanging},
        {"moving-systematic", "one operation, at whose suspensions slots are moved in turn",
         systematic_moves},

        {"no-drift", "the validity takes no account of drifting clocks", without_drift, {Rule::one_holder}},
        {"no-quarantine",
         "nodes that have lost their data vote at once",
         without_quarantine,
         {Rule::one_holder}},
        {"steady-clock",
         "the client's clock stops while it is suspended",
         with_a_steady_clock,
         {Rule::one_holder}},
        {"wall-clock",
         "the client's clock is the wall clock",
         with_a_wall_clock,
         {Rule::one_holder, Rule::lapsed_stays_lapsed}},
    };
    return all;
}

const Preset* find_preset(std::string_view name) {
    const auto it = std::ranges::find(presets(), name, &Preset::name);
    return it == presets().end() ? nullptr : &*it;
}

}  // namespace redlock::sim
