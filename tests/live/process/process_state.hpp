// What the kernel and the allocator count for this process: descriptors, threads and memory.
#pragma once

#include <cstddef>

namespace redlock::test {

/// Returns the number of open descriptors.
std::size_t descriptors();

/// Returns the number of threads.
std::size_t tasks();

/// Returns the number of bytes on the heap that were allocated and not freed.
std::size_t heap();

}  // namespace redlock::test
