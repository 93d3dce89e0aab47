#include "watched_process.hpp"

#include "processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <system_error>

// Headers from before Linux 5.3 lack this number.
#if !defined(SYS_pidfd_open)
#define SYS_pidfd_open 434
#endif

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 200ms;  // into the directory

[[noreturn]] void fail(pid_t process, const std::string& problem) {
    throw std::invalid_argument{"--while-pid: process " + std::to_string(process) + ": " + problem};
}

}  // namespace

WatchedProcess::WatchedProcess(pid_t process)
    : id_(process),
      descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))),  // closed by exec
      has_pidfd_(descriptor_ >= 0) {
    if (has_pidfd_) return;
    // Linux before 5.3 has no pidfd_open(). The profiles of some containers forbid it.
    const bool is_unavailable = errno == ENOSYS || errno == EPERM || errno == EACCES;
    const auto problem = std::generic_category().message(errno);
    if (!is_unavailable) fail(process, problem);
    const auto directory = "/proc/" + std::to_string(process);
    if (proc_shows_our_processes())
        descriptor_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ >= 0) return;
    if (::kill(process, 0) != 0 && errno == ESRCH) fail(process, std::generic_category().message(ESRCH));
    fail(process,
         "this takes the system call pidfd_open (" + problem + ") or a /proc that shows the process");
}

void WatchedProcess::keep_descriptor_only(int number) noexcept {
    keep_descriptor(descriptor_, number);
    descriptor_ = number;
}

bool WatchedProcess::ends_before(Clock::time_point instant) const noexcept {
    for (;;) {
        if (!has_pidfd_ && has_ended(descriptor_, "stat")) return true;
        const auto left = std::clamp<Clock::duration>(instant - boot_clock().now(), Clock::duration::zero(),
                                                      has_pidfd_ ? 1h : look_every);
        pollfd process{has_pidfd_ ? descriptor_ : -1, POLLIN, 0};  // poll() only waits if it is -1
        const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
        if (::poll(&process, 1, static_cast<int>(milliseconds)) > 0) return true;
        if (boot_clock().now() >= instant) return false;
    }
}

}  // namespace redlock::tool
