#include "process_state.hpp"

#include <malloc.h>

#include <filesystem>
#include <iterator>

// A sanitizer replaces the allocator, and then counts the bytes.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace redlock::test {

namespace {

std::size_t entries_of(const std::filesystem::path& directory) {
    const std::filesystem::directory_iterator begin{directory};
    return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator{}));
}

}  // namespace

std::size_t descriptors() {
    return entries_of("/proc/self/fd") - 1;  // without the one that reads the directory
}

std::size_t tasks() {
    return entries_of("/proc/self/task");
}

std::size_t heap() {
    if (__sanitizer_get_current_allocated_bytes) return __sanitizer_get_current_allocated_bytes();
    const auto info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

}  // namespace redlock::test
