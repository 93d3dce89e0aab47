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

/// The resources of this process that a library could leak.
struct Footprint {
    std::size_t heap = test::heap();
    std::size_t descriptors = test::descriptors();
    std::size_t tasks = test::tasks();
};

}  // namespace redlock::test
