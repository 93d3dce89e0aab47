// The kind of world in which a schedule runs: the numbers of clients and nodes, the network conditions, the
// faults. A plan is drawn at random from everything that the protocol must tolerate. A named world narrows
// it, so that one kind of fault in the library is exposed quickly.
#pragma once

#include "network.hpp"
#include "process.hpp"
#include "rng.hpp"
#include "world.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace redlock::sim {

/// Faults that are injected at random.
enum class Fault : std::uint8_t {
    crash_and_keep,     ///< the server crashes, and later starts with all data
    crash_and_forget,   ///< … with no data
    crash_and_go_back,  ///< … with an old snapshot
    flush,              ///< FLUSHALL
    evict_marker,       ///< the marker key of the quarantine is evicted
    snapshot,           ///< the server takes a snapshot
    promote_again,      ///< the server was demoted for a while, and has only replicated data
    forget_scripts,     ///< SCRIPT FLUSH
    freeze,             ///< the server is frozen for a while
    step_clock,         ///< the wall clock of the server is set
    cut,                ///< for a while, nothing passes between one client and one node
    pause,              ///< a client is paused
    set_client_clock,   ///< the wall clock of a client's machine is set
    crash_client,       ///< a client ends while it may hold locks
    move_slots,         ///< the next step of moving the slots of a Redis Cluster
};

struct Plan {
    std::uint64_t number = 0;  ///< the seed of the schedule, from which a world may derive its case
    WorldOptions world{};

    // The clients.
    int clients = 3;
    int threads = 1;          ///< the threads of each client; each has locks of its own
    bool loops = false;       ///< the locks of each client are in an event loop, where they share connections
    int loops_each = 1;       ///< how many event loops a client has
    double disturbs = 0;      ///< the probability that an event cancels an operation or destroys its lock
    double restarts = 0;      ///< the probability that a turn shuts the loop down, and begins anew
    bool systematic = false;  ///< the first client makes an operation that is disturbed at each suspension
    int resources = 1;
    int turns = 5;  ///< how many acquisitions each thread attempts
    milliseconds least_ttl{200};
    milliseconds longest_ttl{1000};
    double drift_factor = 0.01;
    bool fencing = false;
    double shared = 0;      ///< the share of locks that are readers
    double fair = 0;        ///< the share of locks that wait in a queue
    bool queueing = false;  ///< all locks queue and nothing fails, so the queue invariants are checked
    bool leading = false;   ///< the clients elect a leader, and do nothing else
    double terms = 3;       ///< how long a leader works on average, as a multiple of the ttl
    int attempts = 3;
    milliseconds retry_delay{50};
    double rests = 0.5;        ///< the average pause between two turns, as a share of the ttl
    double works = 1;          ///< the longest hold, as a share of the ttl
    double lapses = 0.2;       ///< the probability that a holder sleeps until its lock has lapsed
    double extends = 0.5;      ///< the probability that a holder extends instead of releasing
    double last_moment = 0.2;  ///< the probability that it extends when the validity is nearly over
    double watched = 0;        ///< the share of locks that a watchdog extends
    double watched_works = 3;  ///< the longest hold of a watched lock, as a multiple of the ttl
    double limited = 0;        ///< the share of watched locks with a max_hold
    int slots = 0;             ///< the limit of a semaphore that all clients use instead of locks; 0: none
    double noted = 0;          ///< the share of locks with a holder description
    double kept = 0;           ///< the share of locks with a minimum hold time
    Hazards hazards{};

    // The faults.
    bool calm = false;   ///< no connection and no node ever fails
    bool heals = false;  ///< when all clients have ended, nothing fails any more, and nothing may be left
    std::vector<Fault> faults{};
    nanoseconds fault_interval = 200ms;  ///< the average time between two faults
    nanoseconds longest_fault = 500ms;
    double fault_before_verb = 0;  ///< the probability of a fault just before a client begins a verb
    nanoseconds steps_in_all{};    ///< the largest sum of the steps of one wall clock
};

/// Returns the name of a resource. In a Redis Cluster, all of them are in one slot.
inline std::string resource_name(const Plan& plan, int number) {
    return (plan.world.cluster ? "{r}" : "r") + std::to_string(number);
}

/// Draws any world within the assumptions of the protocol.
Plan any_plan(Rng& rng);

/// Describes the plan at the head of a schedule.
std::string text(const Plan& plan);

}  // namespace redlock::sim
