// What the kernel and the allocator know of this process: descriptors, threads, signals and memory.
#pragma once

#include <fcntl.h>
#include <malloc.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>

// A sanitizer replaces the allocator, and then counts the bytes.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace redlock::support {

/// Returns the names of the entries, which are numbers.
inline std::set<int> numbers_in(const std::filesystem::path& directory) {
    std::set<int> numbers;
    for (const auto& entry : std::filesystem::directory_iterator{directory})
        numbers.insert(std::stoi(entry.path().filename()));
    return numbers;
}

/// Returns the open descriptors.
inline std::set<int> descriptors() {
    auto open = numbers_in("/proc/self/fd");
    // The descriptor with which they were read is closed now.
    std::erase_if(open, [](int descriptor) { return ::fcntl(descriptor, F_GETFD) < 0; });
    return open;
}

/// Returns the ids of the threads.
inline std::set<pid_t> threads() {
    return numbers_in("/proc/self/task");
}

/// Returns the signals that a thread blocks, as a bit for each. If the thread has ended, returns all signals.
inline std::uint64_t blocked_signals(pid_t thread) {
    std::ifstream status{"/proc/self/task/" + std::to_string(thread) + "/status"};
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("SigBlk:")) return std::stoull(line.substr(7), nullptr, 16);
    return std::numeric_limits<std::uint64_t>::max();
}

/// Returns the number of bytes on the heap that were allocated and not freed.
inline std::size_t heap() {
    if (__sanitizer_get_current_allocated_bytes) return __sanitizer_get_current_allocated_bytes();
    const auto info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

/// The resources of this process that a library could leak.
struct Footprint {
    std::size_t heap = support::heap();
    std::size_t descriptors = support::descriptors().size();
    std::size_t threads = support::threads().size();
};

}  // namespace redlock::support
