// A client: a process, what it sees of the nodes, and its randomness.
#pragma once

#include "network.hpp"
#include "process.hpp"
#include "referee.hpp"
#include "sim_nodes.hpp"
#include "sim_watchdog.hpp"

#include <redlock/options.hpp>

#include <functional>
#include <memory>
#include <string>

namespace redlock::sim {

/// What clients share.
struct Surroundings {
    Timeline& timeline;
    Chronicle& chronicle;
    Network& network;
    Referee& referee;
    const std::vector<std::unique_ptr<SimNode>>& nodes;
};

class Client {
public:
    Client(Surroundings surroundings, Dice dice, std::string name, DriftingClock clock, NodesOptions options);
    /// Its fibers end first: they use all the rest.
    ~Client() { process_.end(); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    const std::string& name() const noexcept { return process_.name(); }
    Process& process() noexcept { return process_; }
    SimNodes& network() noexcept { return *network_; }
    Referee& referee() noexcept { return surroundings_.referee; }

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
        surroundings_.timeline.after(span, std::move(event));
    }
    /// Nothing gets through between it and a node for a while.
    void cut_off(std::size_t node, nanoseconds span) {
        network_->link(node).cut_for(span, surroundings_.timeline.now());
    }
    template <class Line>
    void note(Line line) {
        surroundings_.chronicle.note(name(), line);
    }

    /// How long after its last word all of it must have arrived; zero where that cannot be said.
    nanoseconds settles_in() const noexcept { return settles_in_; }
    void settle_in(nanoseconds span) noexcept { settles_in_ = span; }

private:
    Surroundings surroundings_;
    Process process_;
    std::unique_ptr<SimNodes> network_;
    SimEntropy entropy_;
    std::unique_ptr<SimWatchdog> watchdog_{};
    nanoseconds settles_in_{};
};

}  // namespace redlock::sim
