// Runs the real BlockingRenewals in a fiber of a simulated process. A Watchdog runs it in a thread.
#pragma once

#include "process.hpp"

#include <redlock/detail/renewer.hpp>

#include "lock/blocking_renewals.hpp"

#include <stop_token>
#include <utility>

namespace redlock::sim {

class SimWatchdog final : public detail::Renewer {
public:
    /// Starts the fiber now. It ends with the process.
    SimWatchdog(Process& process, Clock& clock) : Renewer(clock), process_(process), renewals_(clock) {
        process_.spawn([this] { renewals_.run(std::stop_token{}); }, Service::background);
    }

    void add(detail::Acquisition acquisition) override { renewals_.add(std::move(acquisition)); }

    /// Ignores a crash while it waits: the round ends with the process, so the wait ends as well.
    void remove(const detail::Acquisition& acquisition) noexcept override {
        const Process::IgnoreCrash ignore_crash{process_};
        renewals_.remove(acquisition);
    }

private:
    Process& process_;
    detail::BlockingRenewals renewals_;
};

}  // namespace redlock::sim
