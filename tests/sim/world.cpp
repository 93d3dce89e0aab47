#include "world.hpp"

#include <redlock/algorithm/waiting.hpp>

#include <algorithm>
#include <stdexcept>

namespace redlock::sim {
namespace {

/// If a world has more events than this, its clients never finish, which is a fault of the test.
constexpr std::uint64_t max_events = 2'000'000;

/// The clocks of the nodes show a day in 2026, because tokens start from them.
constexpr nanoseconds today = std::chrono::hours{24 * 365 * 56};

}  // namespace

World::World(WorldOptions options)
    : options_(options),
      rng_(options.seed),
      timeline_(rng_.child()),
      log_(timeline_),
      network_(timeline_, rng_.child()),
      checker_(timeline_, log_, nodes_, options.quarantine) {
    if (options.logged) log_.open();
    network_.set_conditions(options.conditions);
    for (std::size_t index = 0; index < options.nodes; ++index) {
        const DriftingClock wall{today + rng_.between(0ns, options.skew), some_rate()};
        nodes_.push_back(std::make_unique<SimNode>(timeline_, log_, "node " + std::to_string(index), wall));
        if (options.trusted) nodes_.back()->trust_since(options.quarantine);
    }
    if (!options.cluster) return;
    node(0).join_cluster(node(1), Slots::served, ProcessNetwork::port_of(0));
    node(1).join_cluster(node(0), Slots::elsewhere, ProcessNetwork::port_of(1));
}

double World::some_rate() {
    return 1 + rng_.between(-options_.rate_error, options_.rate_error);
}

/// The boot clocks of two clients have only similar rates in common.
Client& World::client(const std::string& name) {
    return client(name, DriftingClock{rng_.between(60min, 1000min), some_rate()});
}

Client& World::client(const std::string& name, DriftingClock clock) {
    const Environment environment{timeline_, log_, network_, checker_, nodes_};
    const NodesOptions options{.node_timeout = options_.node_timeout,
                               .round = options_.round,
                               .share_connections = options_.processors > 0,
                               .quarantine = options_.quarantine};
    clients_.push_back(
        std::make_unique<Client>(environment, rng_.child(), name, clock, options, options_.processors));
    auto& client = *clients_.back();
    if (options_.client_clock == ClientClock::steady) client.process().stop_clock_in_pauses();
    if (options_.client_clock == ClientClock::wall) client.process().tell_wall_time();
    return client;
}

void World::run(Instant until) {
    while (timeline_.step(until)) step_on();
    if (until != Instant::max()) timeline_.pass_to(until);
}

void World::run_to_a_violation() {
    while (violations().empty() && timeline_.step()) step_on();
}

void World::run_while_busy() {
    while (violations().empty() && busy() && timeline_.step()) step_on();
}

void World::step_on() {
    checker_.check();
    if (events() > max_events) throw std::runtime_error("this world never ends");
}

bool World::busy() const noexcept {
    return std::ranges::any_of(clients_, [](const auto& client) { return client->process().busy(); });
}

/// Bounds the time until all commands of a client have arrived. The client connects, completes the handshake,
/// asks for the run id of the server, sends a command behind another one, and may have to send a script again
/// as a whole. This takes at most ten one-way delays.
void World::is_calm() {
    const auto span = 10 * network_.conditions().longest() + 1ms;
    for (const auto& client : clients_) client->set_settling_time(span);
}

/// Bounds for worlds in which all locks queue:
///
/// - A client enters the queue after a refused round, the release of that attempt, and the handshake of
///   another connection.
/// - From a release to the next hold it takes a message and a round. If a waiter has collided twice with
///   other clients that make their last attempts, it pauses before it acquires the free resource.
/// - A client that comes later passes a waiter at most once. After its release it knows that others wait.
void World::is_queueing(nanoseconds retry_delay, std::size_t waiters) {
    const auto trip = 2 * network_.conditions().longest();
    const auto round = trip * (options_.round == Round::sequential ? static_cast<int>(size()) : 1);
    checker_.expect_queues({.entered_in = 2 * round + 10 * trip + 1ms,
                            .woken_in = 4 * round + 10 * trip + 2 * retry_delay,
                            .by_passes = waiters - 1});
}

void World::finish_move() {
    while (node(0).moves_slots()) node(0).move_slots(rng_);
}

void World::settle(nanoseconds longest_ttl) {
    if (!violations().empty()) return;
    for (const auto& client : clients_)
        checker_.expect(!client->process().alive() || !client->process().busy(), Rule::ends_in_time,
                        client->name() + " waits for nothing");
    timeline_.pass_to(timeline_.now() + longest_ttl);
    checker_.check_deadlocks();
}

}  // namespace redlock::sim
