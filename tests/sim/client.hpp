// A client: a process, what it sees of the nodes, and its randomness.
#pragma once

#include "checker.hpp"
#include "network.hpp"
#include "process.hpp"
#include "sim_nodes.hpp"
#include "sim_watchdog.hpp"

#include <redlock/options.hpp>

#include <functional>
#include <memory>
#include <string>

namespace redlock::sim {

/// What clients share.
struct Environment {
    Timeline& timeline;
    Log& log;
    Network& network;
    Checker& checker;
    const std::vector<std::unique_ptr<SimNode>>& nodes;
};

class Client {
public:
    Client(Environment environment, Rng rng, std::string name, DriftingClock clock, NodesOptions options);
    /// Its fibers end first: they use all the rest.
    ~Client() { process_.end(); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    const std::string& name() const noexcept { return process_.name(); }
    Process& process() noexcept { return process_; }
    SimNodes& network() noexcept { return *network_; }
    Checker& checker() noexcept { return environment_.checker; }

    // ---- What a lock is made of.
    Nodes& nodes() noexcept { return *network_; }
    Clock& clock() noexcept { return *network_->required_clock(); }
    Entropy& entropy() noexcept { return entropy_; }

    /// For LockOptions. Its fiber begins when this is first asked for.
    detail::Renewer* watchdog();

    // ---- Words.
    /// A fiber that begins now; a client may have several.
    void does(std::function<void()> body) { process_.spawn(std::move(body)); }
    /// For its fibers.
    void sleep(nanoseconds span) { clock().sleep_until(process_.now() + span, {}); }
    void sleep_until(Clock::time_point until) { clock().sleep_until(until, {}); }
    /// Something that comes from outside of it, such as a signal.
    void after(nanoseconds span, std::function<void()> event) {
        environment_.timeline.after(span, std::move(event));
    }
    /// Nothing gets through between it and a node for a while.
    void cut_off(std::size_t node, nanoseconds span) {
        network_->link(node).cut_for(span, environment_.timeline.now());
    }
    template <class Line>
    void note(Line line) {
        environment_.log.note(name(), line);
    }

    /// How long after its last command all of them must have arrived; zero if there is no bound.
    nanoseconds settling_time() const noexcept { return settling_time_; }
    void set_settling_time(nanoseconds span) noexcept { settling_time_ = span; }

private:
    Environment environment_;
    Process process_;
    std::unique_ptr<SimNodes> network_;
    SimEntropy entropy_;
    std::unique_ptr<SimWatchdog> watchdog_{};
    nanoseconds settling_time_{};
};

}  // namespace redlock::sim
