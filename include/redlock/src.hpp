// Compiles the whole library as a part of a program, which then needs no compiled library. Exactly one source
// file of the program includes this header, and should contain nothing else. It takes as long to compile as
// the library. All other source files include redlock/redlock.hpp or other public headers as usual.
//
// This source file needs:
// - C++20 with exceptions;
// - the header of hiredis, and the program is linked with hiredis (-lhiredis);
// - the headers of OpenSSL, and the program is linked with OpenSSL (-lssl -lcrypto). With the macro
//   REDLOCK_WITHOUT_TLS it needs no OpenSSL, and the library rejects addresses with TLS (rediss://);
// - the option -pthread.
// The CMake target redlock::headers provides all of this.
//
// If two source files of a program include this header, the linker reports multiple definitions. A program
// that includes it must not use the compiled library (the CMake targets redlock::redlock, redlock::core and
// redlock::asio, or the flags of pkg-config), because it would contain the library twice. These targets and
// flags define the macro REDLOCK_LINKED, with which this header is an error. If another library in the
// program was linked with the compiled library, no error is reported. That library and this header must then
// be of the same version.
#pragma once

#include <redlock/export.hpp>

// After each #error, a missing header stops the compiler, as in export.hpp.
#if defined(REDLOCK_LINKED)
#error "redlock/src.hpp compiles the library, and this program also links it: link redlock::headers alone"
#include <redlock/stop_at_the_error_above>
#elif !defined(__cpp_exceptions)
#error "redlock/src.hpp needs exceptions: compile the source file that includes it without -fno-exceptions"
#include <redlock/stop_at_the_error_above>
#elif !__has_include(<hiredis/hiredis.h>)
#error "redlock/src.hpp needs hiredis, for example the package libhiredis-dev"
#include <redlock/stop_at_the_error_above>
#elif !defined(REDLOCK_WITHOUT_TLS) && !__has_include(<openssl/ssl.h>)
#error "redlock/src.hpp needs OpenSSL, for example the package libssl-dev, or the macro REDLOCK_WITHOUT_TLS"
#include <redlock/stop_at_the_error_above>
#endif

#include <redlock/src/flow/acquire.cpp>
#include <redlock/src/flow/acquire_slot.cpp>
#include <redlock/src/flow/attempt.cpp>
#include <redlock/src/flow/blocking_front.cpp>
#include <redlock/src/flow/lease.cpp>
#include <redlock/src/flow/lock_operations.cpp>
#include <redlock/src/flow/place_in_queue.cpp>
#include <redlock/src/flow/waiter_timing.cpp>
#include <redlock/src/lock/async_leader.cpp>
#include <redlock/src/lock/async_lock.cpp>
#include <redlock/src/lock/entropy.cpp>
#include <redlock/src/lock/error.cpp>
#include <redlock/src/lock/leader.cpp>
#include <redlock/src/lock/lease_view.cpp>
#include <redlock/src/lock/lock.cpp>
#include <redlock/src/lock/options.cpp>
#include <redlock/src/lock/query.cpp>
#include <redlock/src/lock/recursive_lock.cpp>
#include <redlock/src/lock/resources.cpp>
#include <redlock/src/lock/result.cpp>
#include <redlock/src/lock/retry.cpp>
#include <redlock/src/lock/semaphore.cpp>
#include <redlock/src/lock/watchdog.cpp>
#include <redlock/src/loop/async_nodes.cpp>
#include <redlock/src/loop/context.cpp>
#include <redlock/src/loop/listeners.cpp>
#include <redlock/src/loop/loop_group.cpp>
#include <redlock/src/loop/loop_waiter.cpp>
#include <redlock/src/loop/renewals.cpp>
#include <redlock/src/loop/watches.cpp>
#include <redlock/src/os/background_thread.cpp>
#include <redlock/src/os/boot_clock.cpp>
#include <redlock/src/os/os_entropy.cpp>
#include <redlock/src/os/os_network.cpp>
#include <redlock/src/os/process.cpp>
#include <redlock/src/os/resolution.cpp>
#include <redlock/src/os/socket.cpp>
#include <redlock/src/os/timer_descriptor.cpp>
#include <redlock/src/redis/connection.cpp>
#include <redlock/src/redis/endpoint.cpp>
#include <redlock/src/redis/group_waiter.cpp>
#include <redlock/src/redis/lane.cpp>
#include <redlock/src/redis/lanes.cpp>
#include <redlock/src/redis/link.cpp>
#include <redlock/src/redis/listener.cpp>
#include <redlock/src/redis/node.cpp>
#include <redlock/src/redis/node_config.cpp>
#include <redlock/src/redis/node_group.cpp>
#include <redlock/src/redis/redis_cluster.cpp>
#include <redlock/src/redis/redis_nodes.cpp>
#include <redlock/src/redis/reply_parser.cpp>
#include <redlock/src/redis/round_driver.cpp>
#include <redlock/src/redis/sentinel_query.cpp>
#include <redlock/src/redis/server.cpp>
#include <redlock/src/round/nodes.cpp>
#include <redlock/src/scripts.cpp>

#ifdef REDLOCK_WITHOUT_TLS
#include <redlock/src/redis/no_tls.cpp>
#else
#include <redlock/src/redis/tls.cpp>
#endif
