// What the kernel and a server say about a process: its descriptors, threads and memory, its connections, and
// how often it has called.
#pragma once

#include "support/redis_server.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace redlock::exclusion {

/// Descriptors that this process has open.
std::size_t descriptors();

/// Threads of this process.
std::size_t tasks();

/// Bytes allocated on the heap by this process: what malloc() handed out and has not been given back.
std::size_t heap();

/// TCP connections to a port of 127.0.0.1 that the kernel has established.
std::size_t connections_to(std::uint16_t port);

/// How often a command has been called on the server since it started.
std::size_t calls(const support::RedisServer& server, const std::string& command);

}  // namespace redlock::exclusion
