// Replaces operator new in the program that includes this header, so that a test can let an allocation fail
// or do something else first. One source file of the program includes the header, and defines
// before_allocation().
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace redlock::support {

/// Is called at each allocation. The allocation fails if this function throws std::bad_alloc.
void before_allocation();

}  // namespace redlock::support

// Not inline, because otherwise GCC warns about free() for memory from operator new.
// NOLINTBEGIN(misc-definitions-in-headers): one source file includes them
[[gnu::noinline]] void* operator new(std::size_t size) {
    redlock::support::before_allocation();
    if (void* const memory = std::malloc(size)) return memory;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
// NOLINTEND(misc-definitions-in-headers)
