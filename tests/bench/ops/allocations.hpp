// How often the heap was asked for memory. Linking allocations.cpp puts a counting malloc() in front of the
// C library's, for this whole program with its shared libraries.
#pragma once

#include <cstdint>

namespace redlock::bench {

struct Allocations {
    std::uint64_t calls;     ///< of malloc, calloc, realloc and their kin, whoever made them
    std::uint64_t from_cpp;  ///< those of them made by operator new
};

/// Of this thread, since it began.
Allocations allocations() noexcept;

}  // namespace redlock::bench
