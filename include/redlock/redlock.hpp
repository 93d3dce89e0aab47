// redlock: distributed locks with Redis (Redlock) for C++20. This header includes the public API.
//
// Redlock is the algorithm of "Distributed Locks with Redis" in the documentation of Redis. A client asks N
// independent masters, the nodes, to set a key to a random value if the key does not exist. The client holds
// the lock as long as it is certain that a majority of the nodes has this value. No node is special: a
// minority of the nodes may be down, frozen or send wrong answers.
//
//     #include <redlock/redlock.hpp>
//     #include <iostream>
//     using namespace std::chrono_literals;
//
//     int main() {
//         redlock::RedisNodes nodes{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"};
//         redlock::Lock lock{nodes, "orders:42", {.ttl = 10s}};
//         if (auto result = lock.acquire_for(2s)) {
//             charge_the_order();                 // lock.remaining() says how long is left
//         } else {
//             std::cerr << result.message() << '\n';
//         }
//     }                                           // released here
//
// The headers:
//     lock.hpp         the lock: its operations, its states
//     lease_view.hpp   the queries of a lock
//     options.hpp      the options of a lock: ttl, retries, drift and others
//     redis_nodes.hpp  the N Redis servers and the connections to them
//     result.hpp       what an operation returns
//     error.hpp        the errors and their causes
//     watchdog.hpp     extends locks while they are held, and reports a loss
//     semaphore.hpp    at most L holders at a time
//     leader.hpp       leader election
//     recursive_lock.hpp  a lock that its thread may acquire again
//     query.hpp        who holds a lock, node by node
//     observer.hpp     metrics and logs
//     nodes.hpp        the interface between the algorithm and the network
//     algorithm/algorithm.hpp  the Redlock specification, step by step
//     algorithm/waiting.hpp    the queue of LockOptions::fair
#pragma once

#include <redlock/clock.hpp>
#include <redlock/endpoint.hpp>
#include <redlock/entropy.hpp>
#include <redlock/error.hpp>
#include <redlock/leader.hpp>
#include <redlock/lock.hpp>
#include <redlock/nodes.hpp>
#include <redlock/observer.hpp>
#include <redlock/options.hpp>
#include <redlock/query.hpp>
#include <redlock/recursive_lock.hpp>
#include <redlock/redis_nodes.hpp>
#include <redlock/resources.hpp>
#include <redlock/result.hpp>
#include <redlock/retry.hpp>
#include <redlock/semaphore.hpp>
#include <redlock/version.hpp>
#include <redlock/watchdog.hpp>
