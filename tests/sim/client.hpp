// A client: a process, its view of the nodes, and its randomness.
#pragma once

#include "checker.hpp"
#include "network.hpp"
#include "process.hpp"
#include "sim_nodes.hpp"
#include "sim_watchdog.hpp"

#include <redlock/options.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace redlock::sim {

/// The objects that all clients share.
struct Environment {
    Timeline& timeline;
    Log& log;
    Network& network;
    Checker& checker;
    const std::vector<std::unique_ptr<SimNode>>& nodes;
};

class SimLoop;

class Client : detail::NotCopied {
public:
    /// If more rounds than `processors` are under way, they may share connections.
    Client(Environment environment, Rng rng, std::string name, DriftingClock clock, NodesOptions options,
           std::size_t processors);
    /// Ends the fibers first, because they use all other members.
    ~Client();

    const std::string& name() const noexcept { return process_.name(); }
    Process& process() noexcept { return process_; }
    SimNodes& network() noexcept { return *network_; }
    Checker& checker() noexcept { return environment_.checker; }

    // ---- The arguments of a lock.
    Nodes& nodes() noexcept { return *network_; }
    Clock& clock() noexcept { return *network_->required_clock(); }
    Entropy& entropy() noexcept { return entropy_; }

    /// Adds an event loop, which sometimes disturbs the operations of its locks. The fibers of this client
    /// use its loops in turn.
    void use_loop(Rng rng, double disturbs, double restarts);
    /// Returns the loop of the current fiber; null if the client does not use event loops.
    SimLoop* loop();
    /// From now on the loops do not disturb the operations.
    void leave_loops_alone() noexcept;
    bool uses_loops() const noexcept { return !loops_.empty(); }

    /// Returns the watchdog for LockOptions. Its fiber begins at the first call.
    detail::Renewer* watchdog();

    // ---- The vocabulary of scenarios.
    /// Starts a fiber with `body` now. A client may have several.
    void does(std::function<void()> body) { process_.spawn(std::move(body)); }
    /// Blocks the calling fiber of this client.
    void sleep(nanoseconds span) { clock().sleep_until(process_.now() + span, {}); }
    void sleep_until(Clock::time_point until) { clock().sleep_until(until, {}); }
    /// Schedules an event from outside of the process, such as a signal.
    void after(nanoseconds span, std::function<void()> event) {
        environment_.timeline.after(span, std::move(event));
    }
    /// Holds back everything between the client and a node for a while.
    void cut_off(std::size_t node, nanoseconds span) {
        network_->link(node).cut_for(span, environment_.timeline.now());
    }
    /// Moves the slots of the Redis Cluster by some steps. More follow later, because no move lasts for ever.
    void move_slots(Rng& rng) {
        auto& node = *environment_.nodes.front();
        for (int steps = rng.between(1, 6); steps > 0; --steps) node.move_slots(rng);
        environment_.timeline.after(1s, [this, &node, later = rng.child()]() mutable {
            if (node.moves_slots()) move_slots(later);
        });
    }
    template <class Line>
    void note(Line line) {
        environment_.log.note(name(), line);
    }

    /// The time after the last command of the client by which all its commands have arrived; zero if there is
    /// no bound.
    nanoseconds settling_time() const noexcept { return settling_time_; }
    void set_settling_time(nanoseconds span) noexcept { settling_time_ = span; }

private:
    Environment environment_;
    Process process_;
    std::unique_ptr<SimNodes> network_;
    SimEntropy entropy_;
    std::unique_ptr<SimWatchdog> watchdog_{};
    std::vector<std::unique_ptr<SimLoop>> loops_{};
    std::map<const Task*, SimLoop*> loop_of_{};
    nanoseconds settling_time_{};
};

}  // namespace redlock::sim
