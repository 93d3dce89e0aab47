// The worker processes: a quarter of them in each mode, half of them behind each of two sets of links.
#pragma once

#include "ledger.hpp"

#include "support/child_process.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::torture {

struct Terms {
    std::chrono::milliseconds ttl{800};
    std::chrono::milliseconds quarantine{900};
};

/// When a worker was stopped: what it does meanwhile it does late.
struct Stop {
    std::size_t worker;
    Instant from;
    Instant until;
};

class Crew {
public:
    Crew(const Terms& terms, const std::filesystem::path& directory,
         std::vector<std::vector<std::string>> node_lists);

    std::size_t size() const noexcept { return workers_.size(); }

    /// SIGKILL, as a crash, and another worker in its place, which goes on in the same pages.
    void replace(std::size_t worker);
    void freeze(std::size_t worker);
    void thaw(std::size_t worker);
    void thaw_all();

    /// How many ended well when they were told to stop.
    std::size_t stop();

    const std::vector<Stop>& stops() const noexcept { return stops_; }
    std::string output() const;

private:
    void launch(std::size_t worker);

    Terms terms_;
    std::filesystem::path directory_;
    std::vector<std::vector<std::string>> node_lists_;
    Ledger ledger_;
    std::deque<std::optional<support::ChildProcess>> workers_;
    std::vector<std::optional<Instant>> frozen_since_;
    std::vector<Stop> stops_{};
};

}  // namespace redlock::torture
