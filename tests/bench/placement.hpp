// Which CPU does the work. On few cores the scheduler puts a client and its servers now here, now there, and
// the same program is twice as fast or not; with all of them on one CPU what is compared is the work per op.
#pragma once

#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

namespace redlock::bench {

/// This process, and the processes it starts from now on, on one CPU for as long as it lives.
class OnOneCpu {
public:
    OnOneCpu() {
        if (::sched_getaffinity(0, sizeof before_, &before_) != 0)
            throw std::system_error{errno, std::generic_category(), "sched_getaffinity"};
        place_on(last_of(before_));
    }
    ~OnOneCpu() { place_on(before_); }
    OnOneCpu(const OnOneCpu&) = delete;
    OnOneCpu& operator=(const OnOneCpu&) = delete;

private:
    /// The last one that is ours to use: interrupts mostly go to the first.
    static cpu_set_t last_of(const cpu_set_t& allowed) {
        std::size_t last = 0;
        for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &allowed)) last = cpu;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(last, &one);
        return one;
    }

    /// All threads: one of them starts the processes.
    static void place_on(const cpu_set_t& cpus) {
        for (const auto& thread : std::filesystem::directory_iterator{"/proc/self/task"})
            ::sched_setaffinity(std::stoi(thread.path().filename()), sizeof cpus, &cpus);
    }

    cpu_set_t before_{};
};

}  // namespace redlock::bench
