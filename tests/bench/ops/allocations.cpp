#include "allocations.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

// glibc's own, under the names it offers to whoever takes the usual ones.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);
}

namespace {
constinit thread_local redlock::bench::Allocations counted{};
}

redlock::bench::Allocations redlock::bench::allocations() noexcept {
    return counted;
}

extern "C" {

void* malloc(std::size_t size) {
    ++counted.calls;
    return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
    ++counted.calls;
    return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
    ++counted.calls;
    return __libc_realloc(memory, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
    ++counted.calls;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
    *memory = aligned_alloc(alignment, size);
    return *memory != nullptr ? 0 : ENOMEM;
}

void free(void* memory) {
    __libc_free(memory);
}

}  // extern "C"

void* operator new(std::size_t size) {
    ++counted.from_cpp;
    if (auto* const memory = malloc(size > 0 ? size : 1)) return memory;
    throw std::bad_alloc{};
}

void operator delete(void* memory) noexcept {
    free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
    free(memory);
}
