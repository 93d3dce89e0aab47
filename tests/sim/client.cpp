#include "client.hpp"

#include <utility>

namespace redlock::sim {

Client::Client(Surroundings surroundings, Dice dice, std::string name, DriftingClock clock,
               NodesOptions options)
    : surroundings_(surroundings),
      process_(surroundings.timeline, surroundings.chronicle, dice.child(), std::move(name), clock),
      network_(std::make_unique<SimNodes>(process_, surroundings.network, surroundings.nodes, dice.child(),
                                          options)),
      entropy_(dice.child()) {
    process_.on_crash([this] { network_->abandon(); });
    network_->on_late_extension([this](std::string_view owner) {
        referee().violated(Rule::over_with_release,
                           this->name() + " extends " + surroundings_.chronicle.nickname(owner));
    });
}

detail::Renewer* Client::watchdog() {
    if (!watchdog_) watchdog_ = std::make_unique<SimWatchdog>(process_, clock());
    return watchdog_.get();
}

}  // namespace redlock::sim
