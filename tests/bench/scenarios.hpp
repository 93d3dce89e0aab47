// The scenarios. Each starts its own servers, and adds its tables and figures to the report.
#pragma once

#include "report.hpp"

#include <cstddef>

namespace redlock::bench {

/// How thoroughly to measure.
struct Effort {
    std::size_t repetitions = 5;
    std::size_t turns = 30;
    bool peers = true;
};

/// (a) Loopback TCP and unix sockets, unpinned and on one CPU, with one thread.
void loopback(const Effort& effort, Report& report);

/// (b) A round-trip time of 1 ms.
void round_trip_time(const Effort& effort, Report& report);

/// (c) One of five nodes is frozen, or killed.
void faults(const Effort& effort, Report& report);

/// (d) Processes that want one resource: with plain retry, in the queue, and with other libraries.
void contention(const Effort& effort, Report& report);

/// (e) Heap allocations, instructions and system calls of an op.
void work(const Effort& effort, Report& report);

/// (f) Many watched locks: the CPU use of the watchdog, its latest extension, and its latest report of a
/// loss.
void watching(const Effort& effort, Report& report);

/// (g) Ops on different resources at the same time: in 1 to 64 threads, in an event loop with up to 1,000 ops
/// under way, and raw clients that pipeline 16 or 64. Then the same with one node frozen.
void many(const Effort& effort, Report& report);

/// (h) Waits: after a hold, with a short deadline beside threads that wait for frozen nodes, and until a node
/// that continues is trusted. Then the open descriptors.
void waits(const Effort& effort, Report& report);

/// (i) A Redis Cluster of three masters beside one server: 1,000 resources, threads and a loop.
void cluster(const Effort& effort, Report& report);

}  // namespace redlock::bench
