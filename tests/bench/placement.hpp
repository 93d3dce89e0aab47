// Selects the CPU. With few cores the scheduler moves a client and its servers between them, so that the same
// program is sometimes twice as fast. With all processes on one CPU, the comparison is about the work of an
// op.
#pragma once

#include <redlock/detail/not_copied.hpp>

#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

namespace redlock::bench {

/// Keeps this process, and the processes that it starts from now on, on one CPU as long as the object lives.
class OnOneCpu : detail::NotCopied {
public:
    OnOneCpu() {
        if (::sched_getaffinity(0, sizeof before_, &before_) != 0)
            throw std::system_error{errno, std::generic_category(), "sched_getaffinity"};
        place_on(last_of(before_));
    }
    ~OnOneCpu() { place_on(before_); }

private:
    /// Returns the last permitted CPU, because interrupts mostly go to the first.
    static cpu_set_t last_of(const cpu_set_t& allowed) {
        std::size_t last = 0;
        for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &allowed)) last = cpu;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(last, &one);
        return one;
    }

    /// Places all threads, because any of them may start the processes.
    static void place_on(const cpu_set_t& cpus) {
        for (const auto& thread : std::filesystem::directory_iterator{"/proc/self/task"})
            ::sched_setaffinity(std::stoi(thread.path().filename()), sizeof cpus, &cpus);
    }

    cpu_set_t before_{};
};

}  // namespace redlock::bench
