// The worker processes of a test, all after the same resource.
#pragma once

#include "board.hpp"

#include <redlock/redis_nodes.hpp>

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace redlock::exclusion {

/// How a worker treats the lock.
struct Task {
    Round round = Round::sequential;
    std::chrono::milliseconds ttl{1000};
    std::chrono::milliseconds retry_delay{10};
    int holds = 0;           ///< how many it wants; 0: until it is stopped
    bool overstays = false;  ///< extends at times, and at times works on until the lock has lapsed
};

class Team {
public:
    /// One worker for each list of nodes. Returns when all are ready; none has tried to acquire yet.
    Team(const Task& task, const std::vector<std::vector<std::string>>& nodes);

    std::size_t size() const noexcept { return workers_.size(); }
    void start() { board_.start(); }

    /// SIGKILL, as a crash, and another worker in its place, which goes on in the same diary.
    void replace(std::size_t worker);

    /// Stops them, and says how many ended well within `patience`.
    std::size_t stop(std::chrono::nanoseconds patience = std::chrono::seconds{20});

    /// The same, but for workers that end by themselves when they have had enough.
    std::size_t wait(std::chrono::nanoseconds patience);

    std::int64_t holds();
    std::int64_t attempts();
    Diary& diary(std::size_t worker) { return board_.diary(worker); }

    /// What was held until now.
    std::vector<Hold> history();

    /// What the workers have printed: nothing, if all went well.
    std::string output() const;

private:
    void launch(std::size_t worker);

    Task task_;
    std::vector<std::vector<std::string>> nodes_;
    support::TemporaryDirectory directory_;
    Board board_;
    std::deque<std::optional<support::ChildProcess>> workers_;
};

}  // namespace redlock::exclusion
