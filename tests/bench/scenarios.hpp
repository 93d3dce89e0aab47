// What is measured. Each scenario starts servers of its own, and adds its tables and figures to the report.
#pragma once

#include "report.hpp"

#include <cstddef>

namespace redlock::bench {

/// How thorough to be.
struct Effort {
    std::size_t repetitions = 5;
    std::size_t turns = 30;
    bool peers = true;
};

/// (a) Loopback TCP and unix sockets, unpinned and on one CPU, one thread.
void loopback(const Effort& effort, Report& report);

/// (b) 1 ms of round-trip time.
void round_trip_time(const Effort& effort, Report& report);

/// (c) One node of five frozen, and one killed.
void faults(const Effort& effort, Report& report);

/// (d) 1 to 16 threads, each with a resource of its own, all on one RedisNodes.
void threads(const Effort& effort, Report& report);

/// (e) Processes after one resource: with plain retry, in the queue, and with peers.
void contention(const Effort& effort, Report& report);

/// (f) Heap allocations, instructions and system calls per op.
void work(const Effort& effort, Report& report);

/// (g) Many locks under a watchdog: its share of a core, its latest extension, its latest notice of a loss.
void watching(const Effort& effort, Report& report);

}  // namespace redlock::bench
