#include "client.hpp"

#include "sim_loop.hpp"

#include <utility>

namespace redlock::sim {

Client::Client(Environment environment, Rng rng, std::string name, DriftingClock clock, NodesOptions options,
               std::size_t processors)
    : environment_(environment),
      process_(environment.timeline, environment.log, rng.child(), std::move(name), clock),
      network_(std::make_unique<SimNodes>(process_, environment.network, environment.nodes, rng.child(),
                                          options, processors, environment.checker)),
      entropy_(rng.child()) {
    process_.on_crash([this] { network_->abandon(); });
}

Client::~Client() {
    network_->abandon();  // a fiber that ignores the end of the process must not wait
    process_.end();
}

void Client::use_loop(Rng rng, double disturbs, double restarts) {
    const SimLoop::Disturbances all{.operation = disturbs, .all = restarts};
    loops_.push_back(std::make_unique<SimLoop>(*this, network_->network(), rng, all));
}

SimLoop* Client::loop() {
    if (loops_.empty()) return nullptr;
    const auto next = loop_of_.size() % loops_.size();
    return loop_of_.try_emplace(process_.current(), loops_[next].get()).first->second;
}

void Client::leave_loops_alone() noexcept {
    for (const auto& loop : loops_) loop->stop_disturbing();
}

detail::Renewer* Client::watchdog() {
    if (uses_loops()) return loop_watchdog();
    if (!watchdog_) watchdog_ = std::make_unique<SimWatchdog>(process_, clock());
    return watchdog_.get();
}

}  // namespace redlock::sim
