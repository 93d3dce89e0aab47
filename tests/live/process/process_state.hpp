// What the kernel says about this process, its descriptors, threads and memory, and a server about what it
// was sent.
#pragma once

#include "support/redis_server.hpp"

#include <cstddef>
#include <string>

namespace redlock::test {

/// Descriptors that this process has open.
std::size_t descriptors();

/// Threads of this process.
std::size_t tasks();

/// Bytes allocated on the heap by this process: what malloc() handed out and has not been given back.
std::size_t heap();

/// How often a command has been called on the server since it started.
std::size_t calls(const support::RedisServer& server, const std::string& command);

}  // namespace redlock::test
