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

/// What the clock of a client is. Only the first is right: Redis goes on expiring keys while a machine
/// sleeps, and its wall clock may be set.
enum class ClientClock : std::uint8_t {
    boot,    ///< as CLOCK_BOOTTIME
    steady,  ///< as CLOCK_MONOTONIC: stops while the process is suspended
    wall,    ///< as CLOCK_REALTIME
};

struct WorldOptions {
    std::size_t nodes = 3;
    std::uint64_t seed = 1;
    milliseconds node_timeout{50};
    milliseconds quarantine{0};
    Round round = Round::sequential;
    bool trusted = true;    ///< the nodes have had their data for long when the world begins
    double rate_error = 0;  ///< of every clock, at most
    nanoseconds skew{};     ///< how far the wall clocks of two nodes are apart, at most
    NetworkConditions conditions{};
    ClientClock client_clock = ClientClock::boot;
    bool logged = false;  ///< the schedule is written down
};

class World {
public:
    explicit World(WorldOptions options);
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // ---- Who is in it.
    SimNode& node(std::size_t index) { return *nodes_.at(index); }
    std::size_t size() const noexcept { return nodes_.size(); }
    Client& client(const std::string& name);
    Client& client(const std::string& name, DriftingClock clock);
    std::vector<std::unique_ptr<Client>>& clients() noexcept { return clients_; }
    Network& network() noexcept { return network_; }
    Timeline& timeline() noexcept { return timeline_; }
    Log& log() noexcept { return log_; }
    Rng& rng() noexcept { return rng_; }

    // ---- What happens in it.
    void at(Instant when, std::function<void()> event) { timeline_.at(when, std::move(event)); }
    Instant now() const noexcept { return timeline_.now(); }
    /// Until nothing is going to happen any more, or `until`.
    void run(Instant until = Instant::max());
    /// The same, but no further than the first violation.
    void run_to_a_violation();
    /// Whether some fiber of some client still has something to do.
    bool busy() const noexcept;
    /// From now on the checker relies on every message arriving: no node and no connection fails.
    void is_calm();
    /// The same where all locks of one resource wait in a queue.
    void is_queueing(nanoseconds retry_delay);
    /// When all is over and `longest_ttl` has passed, no key may be left.
    void settle(nanoseconds longest_ttl);

    // ---- What came of it.
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
