// The worker processes: equally many in each mode, and half of them behind each of two sets of proxies.
#pragma once

#include "hold_log.hpp"

#include "support/child_process.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace redlock::torture {

/// The settings of all workers' locks.
struct LockSettings {
    std::chrono::milliseconds ttl{800};
    std::chrono::milliseconds quarantine{900};
    std::chrono::milliseconds node_timeout{50};
};

class WorkerPool {
public:
    WorkerPool(const LockSettings& settings, const std::filesystem::path& directory,
               std::vector<std::vector<std::string>> node_lists);

    std::size_t size() const noexcept { return workers_.size(); }

    /// Sends SIGKILL, like a crash, and starts another worker, which continues the same log.
    void replace(std::size_t worker);
    void freeze(std::size_t worker);
    void thaw(std::size_t worker);
    void thaw_all();

    /// Stops all workers. Returns how many ended without an error.
    std::size_t stop();

    /// Returns when workers were frozen, and when they did not run because the machine was busy.
    std::vector<Suspension> suspensions();
    /// Returns the output of the workers, which is empty if there was no error.
    std::string output() const;
    HoldLog& log() noexcept { return log_; }

private:
    void launch(std::size_t worker);

    LockSettings settings_;
    std::filesystem::path directory_;
    std::vector<std::vector<std::string>> node_lists_;
    HoldLog log_;
    std::deque<std::optional<support::ChildProcess>> workers_;
    std::vector<std::optional<Instant>> frozen_since_;
    std::vector<Suspension> suspensions_{};
};

}  // namespace redlock::torture
