// The accident that fencing is for, made to happen: a holder pauses, its lock expires, another one works, and
// the first one goes on where it was.
#pragma once

#include "holder.hpp"

#include "support/cluster.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <filesystem>
#include <string>

namespace fenced_store {

class HolderProcess;

/// Holder A adds 10 to a balance of 100, holder B adds 50.
class Race {
public:
    static constexpr int before = 100;
    static constexpr int deposit_of_a = 10;
    static constexpr int deposit_of_b = 50;

    Race(redlock::support::Cluster& nodes, Writing writing);

    /// Tells the story on standard output. Throws std::runtime_error when it does not come to its end.
    void run();

    /// Requires that run() has returned.
    int balance();
    bool anything_refused() const noexcept { return refused_; }

private:
    void let_the_lock_expire();
    void finish(HolderProcess& holder, const std::string& name);
    void retell_a_line(HolderProcess& holder, const std::string& name);
    void say(const std::string& what) const;

    redlock::support::Cluster& nodes_;
    Writing writing_;
    redlock::support::TemporaryDirectory directory_{};
    std::filesystem::path file_ = directory_ / "accounts.db";
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    bool refused_ = false;
};

}  // namespace fenced_store
