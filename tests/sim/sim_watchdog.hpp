// The real Watchlist in a fiber of a simulated process, as Watchdog has it in a thread.
#pragma once

#include "process.hpp"

#include <redlock/watch.hpp>

#include <cstddef>
#include <functional>

/// A Watchlist goes through its locks in the order of their addresses' hashes, which no seed decides. Here
/// all have one, and the order is that in which they came.
template <>
struct std::hash<redlock::Watch*> {
    std::size_t operator()(redlock::Watch*) const noexcept { return 0; }
};

#include <redlock/watchlist.hpp>

#include <memory>
#include <stop_token>

namespace redlock::sim {

class SimWatchdog final : public Watcher {
public:
    /// Its fiber begins now, and ends with the process.
    SimWatchdog(Process& process, Clock& clock) : process_(process), list_(clock) {
        process_.spawn([this] { list_.run(std::stop_token{}); }, Service::background);
    }

    Clock& clock() noexcept override { return list_.clock(); }

    void watch(std::shared_ptr<Watch> watch) override { list_.watch(std::move(watch)); }

    /// What it waits for comes also in a process that has crashed: the round ends with it.
    void unwatch(Watch& watch) noexcept override {
        const Process::SeeingItThrough patience{process_};
        list_.unwatch(watch);
    }

private:
    Process& process_;
    Watchlist list_;
};

}  // namespace redlock::sim
