// redlock: distributed locks with Redis (Redlock) for C++20. This header includes what users name.
//
// Redlock is the algorithm of the page "Distributed Locks with Redis": a client asks N independent masters
// to set a key, if absent, to a random value of its own, and holds the lock for as long as a majority of
// those keys is certain to live. No node is special; a minority may be down, frozen or lying.
//
//     #include <redlock/redlock.hpp>
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
//     }                                           // released here, on all nodes
//
// Where to read on:
//     lock.hpp         the lock: its verbs, its questions, its states
//     algorithm.hpp    the page, step by step
//     nodes.hpp        the seam to the network: commands, votes, tallies
//     redis_nodes.hpp  the network: N hiredis connections
//     options.hpp      ttl, retries, drift
//     fencing.hpp      tokens for resources that check them
//     waiting.hpp      a queue for those that wait
//     watchdog.hpp     extends what is held, and reports a loss
//     query.hpp        who holds a lock, node by node
//     semaphore.hpp    at most L holders at a time
//     leader.hpp       work that one of several processes does
//     recursive_lock.hpp       for code that acquires what it holds
//     result.hpp, error.hpp    what a verb answers, and why
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
