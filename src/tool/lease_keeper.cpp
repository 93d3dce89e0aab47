#include "lease_keeper.hpp"

#include "os/scoped_signal_block.hpp"

#include <redlock/clock.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

int open_process([[maybe_unused]] pid_t process) {
#if defined(SYS_pidfd_open)
    return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));  // closed by exec, as all of them are
#else
    errno = ENOSYS;
    return -1;
#endif
}

/// A terminal that goes away, and who waits for the end of our output, are to notice nothing of it.
void leave_session() noexcept {
    ::setsid();
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, standard);
}

}  // namespace

LeaseKeeper::LeaseKeeper(pid_t process) : process_(open_process(process)) {
    if (process_ >= 0) return;
    throw std::invalid_argument{"--while-pid: process " + std::to_string(process) + ": " +
                                std::generic_category().message(errno)};
}

LeaseKeeper::~LeaseKeeper() {
    ::close(process_);
}

void LeaseKeeper::keep_in_background(Nodes& nodes, const algorithm::LeaseRequest& request, Lease lease,
                                     std::string_view note) const {
    const auto child = ::fork();
    if (child < 0) throw std::system_error{errno, std::generic_category(), "a process to keep the lock"};
    if (child > 0) return;
    try {
        leave_session();
        keep(nodes, request, lease, note);
    } catch (const std::exception&) {  // nobody is left who could be told; the lease ends by itself
    }
    ::_exit(0);
}

/// Three times in a ttl: one extension may fail. What is left of a lease that cannot be kept is let go.
void LeaseKeeper::keep(Nodes& nodes, const algorithm::LeaseRequest& request, Lease& lease,
                       std::string_view note) const {
    auto& clock = boot_clock();
    while (!process_ends_within(request.ttl / 3))
        if (algorithm::extend(nodes, clock, request, lease))
            algorithm::note_holder(nodes, request.resources, lease, note, request.ttl);
        else if (clock.now() + request.ttl / 3 > lease.valid_until)
            break;
    const auto before = lease;
    (void)algorithm::release(nodes, clock, request.resources, lease, request.fair);
    algorithm::note_holder(nodes, request.resources, before, note, {});
}

bool LeaseKeeper::process_ends_within(std::chrono::nanoseconds span) const noexcept {
    const auto deadline = boot_clock().now() + span;
    for (auto now = boot_clock().now(); now < deadline; now = boot_clock().now()) {
        pollfd ended{process_, POLLIN, 0};
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(std::min<Clock::duration>(deadline - now, 1h));
        if (::poll(&ended, 1, static_cast<int>(left.count())) > 0) return true;
    }
    return false;
}

}  // namespace redlock::tool
