// What kind of world a schedule is to run in: how many of what, how bad the conditions, which faults. Drawn
// at random from all that the protocol is said to bear; named worlds narrow it to where a kind of mistake
// shows soon.
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
    crash_and_keep,     ///< a crash; later a start with all data
    crash_and_forget,   ///< … with none
    crash_and_go_back,  ///< … with an old snapshot
    flush,              ///< FLUSHALL
    evict_marker,       ///< the marker of the quarantine is evicted
    snapshot,           ///< one is taken
    promote_again,      ///< it was demoted for a while, and has what had been replicated to it
    forget_scripts,     ///< SCRIPT FLUSH
    freeze,             ///< the server is frozen for a while
    step_clock,         ///< its wall clock is set
    cut,                ///< nothing gets through between one client and one node for a while
    pause,              ///< a client is paused
    set_client_clock,   ///< the wall clock of a client's machine is set
    crash_client,       ///< a client ends, whatever it holds
};

struct Plan {
    WorldOptions world{};

    // The clients.
    int clients = 3;
    int threads = 1;  ///< of each, with locks of their own
    int resources = 1;
    int turns = 5;  ///< acquisitions each thread tries
    milliseconds least_ttl{200};
    milliseconds longest_ttl{1000};
    double drift_factor = 0.01;
    bool fencing = false;
    double shared = 0;      ///< how many of their locks are readers
    double fair = 0;        ///< how many of their locks wait in a queue
    bool queueing = false;  ///< all of them do, and nothing fails: the claims about the queue hold
    bool leading = false;   ///< they elect a leader, in place of all that
    int attempts = 3;
    milliseconds retry_delay{50};
    double works = 1;          ///< how long they hold, as a share of the ttl, at most
    double extends = 0.5;      ///< how often they extend rather than let go
    double last_moment = 0.2;  ///< how often they do so when the validity is nearly over
    double watched = 0;        ///< how many of their locks a watchdog extends
    double watched_works = 3;  ///< how long they hold those, as a multiple of the ttl, at most
    double limited = 0;        ///< how many of those have a longest hold
    int slots = 0;             ///< of a semaphore that all use in place of the locks; 0: none
    double noted = 0;          ///< how many of their locks come with a note of the holder
    double kept = 0;           ///< how many of their locks keep the resource for a least time
    Hazards hazards{};

    // The faults.
    bool calm = false;  ///< no connection and no node ever fails
    std::vector<Fault> faults{};
    nanoseconds fault_interval = 200ms;  ///< between two of them, on average
    nanoseconds longest_fault = 500ms;
    double fault_before_verb = 0;  ///< how often one of them strikes just when a client begins a verb
    nanoseconds steps_in_all{};    ///< how far one wall clock may be set, forward and back
};

/// Any world within the assumptions.
Plan any_plan(Rng& rng);

/// For the head of a schedule.
std::string text(const Plan& plan);

}  // namespace redlock::sim
