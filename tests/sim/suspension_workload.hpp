// The workload of the client in the world `loops-systematic`. It repeats one operation of an event loop. The
// first time, the operation is disturbed at its first suspension, the second time at its second one, and so
// on, until the operation ends before. The number of the schedule decides which operation this is, what
// happens to it, and in which conditions.
#pragma once

#include "checked_lock.hpp"
#include "plan.hpp"
#include "sim_loop.hpp"

#include <cstddef>
#include <cstdint>

namespace redlock::sim {

/// What a schedule tries systematically.
struct SuspensionCase {
    enum class Operation : std::uint8_t {
        acquire,  ///< an exclusive lock beside readers
        acquire_fair,
        acquire_as_reader,
        acquire_several,
        acquire_with_fencing,
        acquire_with_quarantine,  ///< among nodes that lose their data
        try_acquire,
        extend,
        release,
        semaphore,  ///< its acquisition
        leader,     ///< from its first campaign until it is cancelled
    };
    enum class Conditions : std::uint8_t {
        calm,      ///< no node and no connection fails
        breaking,  ///< connections break
        hanging,   ///< nodes freeze, crash, and forget
    };
    static constexpr std::size_t operations = 11;
    static constexpr std::size_t disturbances = 3;
    static constexpr std::size_t conditions_count = 3;
    /// This many successive numbers have all cases.
    static constexpr std::size_t count = operations * disturbances * conditions_count;

    Operation operation;
    SimLoop::Disturbance disturbance;
    Conditions conditions;

    static SuspensionCase of(std::uint64_t number);

    /// The slots of a Redis Cluster are moved. This many successive numbers have all cases.
    static constexpr std::size_t count_in_cluster = 21;
    static SuspensionCase in_cluster(std::uint64_t number);
};

/// Narrows a plan to the conditions of its case.
void prepare(Plan& plan, const SuspensionCase& of);

class SuspensionWorkload {
public:
    SuspensionWorkload(Client& client, const Plan& plan, Rng rng);

    void run();

private:
    /// Returns true if the operation was disturbed at this suspension.
    bool disturb_at(std::size_t suspension);
    bool disturb_leader_at(std::size_t suspension);
    bool disturb_semaphore_at(std::size_t suspension);
    void acquire(CheckedLock& lock);

    Client& client_;
    SimLoop& loop_;
    const Plan& plan_;
    const SuspensionCase case_;
    Rng rng_;
    const LockOptions options_;
};

}  // namespace redlock::sim
