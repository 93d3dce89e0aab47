#include "placement.hpp"

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

namespace redlock::bench {
namespace {

/// The last one that is ours to use: interrupts mostly go to the first.
cpu_set_t last_of(const cpu_set_t& allowed) {
    std::size_t last = 0;
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &allowed)) last = cpu;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    return one;
}

void place(pid_t process, const cpu_set_t& cpus) {
    const auto threads = std::filesystem::path{"/proc"} / std::to_string(process) / "task";
    for (const auto& thread : std::filesystem::directory_iterator{threads})
        ::sched_setaffinity(std::stoi(thread.path().filename()), sizeof cpus, &cpus);
}

}  // namespace

OnOneCpu::OnOneCpu(std::span<const pid_t> processes) : processes_(processes) {
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0)
        throw std::system_error{errno, std::generic_category(), "sched_getaffinity"};
    const auto one = last_of(before_);
    ::sched_setaffinity(0, sizeof one, &one);
    for (const auto process : processes_) place(process, one);
}

OnOneCpu::~OnOneCpu() {
    ::sched_setaffinity(0, sizeof before_, &before_);
    for (const auto process : processes_) place(process, before_);
}

}  // namespace redlock::bench
