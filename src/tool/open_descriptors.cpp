#include "open_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#if defined(__linux__)
#include <dirent.h>
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace redlock::tool {
namespace {

constexpr int largest = std::numeric_limits<int>::max();

/// Returns false if the kernel has no close_range(), as before Linux 5.9.
bool close_range([[maybe_unused]] int first, [[maybe_unused]] int last) noexcept {
#if defined(SYS_close_range)
    return first > last ||
           ::syscall(SYS_close_range, static_cast<unsigned>(first), static_cast<unsigned>(last), 0U) == 0;
#else
    return false;
#endif
}

/// Returns the number that a name in /proc/self/fd is, or -1.
int number_of(const char* name) noexcept {
    int number = 0;
    for (; *name >= '0' && *name <= '9'; ++name) number = 10 * number + (*name - '0');
    return *name == '\0' ? number : -1;
}

/// Closes the descriptors that /proc lists. Returns false if it lists none. The list goes on correctly while
/// descriptors are closed, because the kernel continues it by their numbers.
bool close_listed([[maybe_unused]] int first, [[maybe_unused]] int kept) noexcept {
#if defined(__linux__)
    const int directory = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return false;
    alignas(dirent64) std::array<char, 4096> entries{};
    for (;;) {  // not readdir(), which allocates
        const auto size = ::syscall(SYS_getdents64, directory, entries.data(), entries.size());
        if (size <= 0) break;
        for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
            const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
            const int number = number_of(entry->d_name);
            if (number >= first && number != kept && number != directory) ::close(number);
            at += entry->d_reclen;
        }
    }
    ::close(directory);
    return true;
#else
    return false;
#endif
}

}  // namespace

void close_descriptors(int first, int kept) noexcept {
    if (close_range(first, kept - 1) && close_range(std::max(first, kept + 1), largest)) return;
    if (close_listed(first, kept)) return;
    constexpr int end = 1024;
    for (int number = first; number < end; ++number)
        if (number != kept) ::close(number);
}

}  // namespace redlock::tool
