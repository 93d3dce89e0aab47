#include "client.hpp"

#include <utility>

namespace redlock::sim {

Client::Client(Environment environment, Rng rng, std::string name, DriftingClock clock, NodesOptions options)
    : environment_(environment),
      process_(environment.timeline, environment.log, rng.child(), std::move(name), clock),
      network_(std::make_unique<SimNodes>(process_, environment.network, environment.nodes, rng.child(),
                                          options, environment.checker)),
      entropy_(rng.child()) {
    process_.on_crash([this] { network_->abandon(); });
}

detail::Renewer* Client::watchdog() {
    if (!watchdog_) watchdog_ = std::make_unique<SimWatchdog>(process_, clock());
    return watchdog_.get();
}

}  // namespace redlock::sim
