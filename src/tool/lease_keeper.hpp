// A lease that lasts for as long as some process does: `redlock acquire --while-pid`.
#pragma once

#include <redlock/algorithm.hpp>
#include <redlock/lease.hpp>
#include <redlock/nodes.hpp>

#include <sys/types.h>

#include <chrono>
#include <string_view>

namespace redlock::tool {

class LeaseKeeper {
public:
    /// `process` is told from a later one of the same number from here on. Throws std::invalid_argument where
    /// there is no such process.
    explicit LeaseKeeper(pid_t process);
    ~LeaseKeeper();
    LeaseKeeper(const LeaseKeeper&) = delete;
    LeaseKeeper& operator=(const LeaseKeeper&) = delete;

    /// Leaves a process behind, with nothing of ours open but `nodes`, which extends the lease until the
    /// other one has ended, and then releases it; the note of the holder with it. It also ends when the lease
    /// is lost or was released. Throws std::system_error where no process is to be had.
    void keep_in_background(Nodes& nodes, const algorithm::LeaseRequest& request, Lease lease,
                            std::string_view note) const;

private:
    bool process_ends_within(std::chrono::nanoseconds span) const noexcept;
    void keep(Nodes& nodes, const algorithm::LeaseRequest& request, Lease& lease,
              std::string_view note) const;

    int process_;  // a descriptor of it
};

}  // namespace redlock::tool
