#include "client.hpp"

#include <utility>

namespace redlock::sim {
namespace {

SimNodesOptions as_seen_with(const Flaws& flaws, SimNodesOptions options) {
    if (flaws.no_quarantine) options.quarantine = 0ms;
    return options;
}

}  // namespace

Client::Client(Surroundings surroundings, Dice dice, std::string name, DriftingClock clock,
               SimNodesOptions options)
    : surroundings_(surroundings),
      process_(surroundings.timeline, surroundings.chronicle, dice.child(), std::move(name), clock),
      network_(std::make_unique<SimNodes>(process_, surroundings.network, surroundings.nodes, dice.child(),
                                          as_seen_with(surroundings.flaws, options))),
      flawed_clock_(process_),
      flawed_nodes_(std::make_unique<FlawedNodes>(*network_, flawed_clock_, surroundings.flaws)),
      entropy_(dice.child()) {
    process_.on_crash([this] { network_->abandon(); });
    network_->on_late_extension([this](std::string_view owner) {
        referee().violated(Rule::over_with_release,
                           this->name() + " extends " + surroundings_.chronicle.nickname(owner));
    });
    if (surroundings.flaws.one_owner) entropy_.repeat();
    if (surroundings.flaws.wall_clock) process_.tell_wall_time();
    if (surroundings.flaws.steady_clock) process_.stop_clock_in_pauses();
}

Watcher* Client::watchdog() {
    if (!watchdog_) watchdog_ = std::make_unique<SimWatchdog>(process_, clock(), surroundings_.flaws);
    return watchdog_.get();
}

}  // namespace redlock::sim
