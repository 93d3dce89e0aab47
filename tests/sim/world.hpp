// A world: nodes, a network, clients, true time, and a checker:
//
//     World world{{.nodes = 3}};
//     auto& alice = world.client("alice");
//     alice.does([&] {
//         CheckedLock lock{alice, "orders:42", {.ttl = 10s}};
//         EXPECT_TRUE(lock.acquire());
//         alice.process().pause_for(1min);
//         EXPECT_FALSE(lock.valid());
//     });
//     world.at(3s, [&] { world.node(2).crash(); });
//     world.run();
//     EXPECT_THAT(world.violations(), IsEmpty());
#pragma once

#include "checked_lock.hpp"
#include "checker.hpp"
#include "client.hpp"
#include "log.hpp"
#include "network.hpp"
#include "rng.hpp"
#include "sim_node.hpp"
#include "timeline.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redlock::sim {

/// The clock of a client. Only `boot` is correct. Redis continues to expire keys while a machine sleeps,
/// which rules out `steady`. The wall clock may be set, which rules out `wall`.
enum class ClientClock : std::uint8_t {
    boot,    ///< like CLOCK_BOOTTIME
    steady,  ///< like CLOCK_MONOTONIC: stops while the process is suspended
    wall,    ///< like CLOCK_REALTIME
};

struct WorldOptions {
    std::size_t nodes = 3;
    bool cluster = false;  ///< the only node is a Redis Cluster of two servers; `nodes` must be 2
    std::uint64_t seed = 1;
    milliseconds node_timeout{50};
    milliseconds quarantine{0};
    Round round = Round::sequential;
    std::size_t processors = 0;  ///< if a process has more rounds under way, they share connections; 0: never
    bool trusted = true;         ///< the nodes have had their data long enough for the quarantine
    double rate_error = 0;       ///< the largest rate error of every clock
    nanoseconds skew{};          ///< the largest difference between the wall clocks of two nodes
    NetworkConditions conditions{};
    ClientClock client_clock = ClientClock::boot;
    bool logged = false;  ///< writes the schedule
};

class World : detail::NotCopied {
public:
    explicit World(WorldOptions options);

    // ---- The participants.
    SimNode& node(std::size_t index) { return *nodes_.at(index); }
    std::size_t size() const noexcept { return nodes_.size(); }
    Client& client(const std::string& name);
    Client& client(const std::string& name, DriftingClock clock);
    std::vector<std::unique_ptr<Client>>& clients() noexcept { return clients_; }
    Network& network() noexcept { return network_; }
    Timeline& timeline() noexcept { return timeline_; }
    Log& log() noexcept { return log_; }
    Rng& rng() noexcept { return rng_; }

    // ---- The events.
    void at(Instant when, std::function<void()> event) { timeline_.at(when, std::move(event)); }
    Instant now() const noexcept { return timeline_.now(); }
    /// Runs until nothing is left to happen, or until `until`.
    void run(Instant until = Instant::max());
    /// The same, but stops at the first violation.
    void run_to_a_violation();
    /// The same, but stops when all user fibers have ended.
    void run_while_busy();
    /// Returns true if some user fiber of some client has not ended.
    bool busy() const noexcept;
    /// Tells the checker to rely on the arrival of every message, because no node and no connection fails.
    void is_calm();
    /// Like is_calm(), if all locks of one resource also wait in a queue.
    void is_queueing(nanoseconds retry_delay, std::size_t waiters);
    /// Checks that no key is left when all clients have finished and `longest_ttl` has passed.
    void settle(nanoseconds longest_ttl);
    /// Ends the move of the slots of the Redis Cluster.
    void finish_move();

    // ---- The outcome.
    Checker& checker() noexcept { return checker_; }
    const std::vector<Violation>& violations() const noexcept { return checker_.violations(); }
    std::uint64_t events() const noexcept { return timeline_.events(); }

private:
    void step_on();
    double some_rate();

    WorldOptions options_;
    Rng rng_;
    Timeline timeline_;
    Log log_;
    Network network_;
    std::vector<std::unique_ptr<SimNode>> nodes_{};
    Checker checker_;
    std::vector<std::unique_ptr<Client>> clients_{};
};

}  // namespace redlock::sim
