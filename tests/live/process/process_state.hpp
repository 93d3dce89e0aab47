// What the kernel has counted of this process: its descriptors, threads and memory.
#pragma once

#include <cstddef>

namespace redlock::test {

/// Descriptors that this process has open.
std::size_t descriptors();

/// Threads of this process.
std::size_t tasks();

/// Bytes allocated on the heap by this process: what malloc() handed out and has not been given back.
std::size_t heap();

}  // namespace redlock::test
