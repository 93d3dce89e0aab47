#include "guardian.hpp"

#include "group_signals.hpp"

#include "os/scoped_signal_block.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <new>
#include <system_error>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

/// Whoever waits for the end of what they are connected to is not to wait for us.
void close_all_but(int fd) noexcept {
    const auto kept = static_cast<unsigned>(fd);
#if defined(SYS_close_range)
    const bool below = kept == 0 || ::syscall(SYS_close_range, 0U, kept - 1, 0U) == 0;
    if (below && ::syscall(SYS_close_range, kept + 1, ~0U, 0U) == 0) return;
#endif
    constexpr int most = 1024;
    for (int it = 0; it < most; ++it)
        if (it != fd) ::close(it);
}

void take_a_name() noexcept {
#if defined(__linux__)
    ::prctl(PR_SET_NAME, "redlock-guard");  // `pkill -x redlock` is not for it
#endif
}

void pause(std::chrono::nanoseconds span) noexcept {
    const timespec time{0, static_cast<long>(span.count())};
    ::nanosleep(&time, nullptr);
}

}  // namespace

Guardian::Guardian(bool kills, std::chrono::nanoseconds grace) : kills_(kills), grace_(grace) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
    void* const page =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
        shared_ = new (page) Shared;
        const ScopedSignalBlock blocked;  // it keeps them so: it ends when we do
        id_ = ::fork();
        if (id_ == 0) {
            ::close(ends[1]);
            wait_for_our_end(ends[0]);
        }
    }
    const int error = errno;
    ::close(ends[0]);
    pipe_ = ends[1];
    if (id_ > 0) return;
    ::close(pipe_);
    if (shared_) ::munmap(page, sizeof(Shared));
    throw std::system_error{error, std::generic_category(), "the guardian of the command"};
}

Guardian::~Guardian() {
    guard(0);
    ::close(pipe_);
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
    ::munmap(shared_, sizeof(Shared));
}

void Guardian::lease_ends(Clock::time_point instant) const noexcept {
    shared_->lease_ends = instant.time_since_epoch().count();
}

/// Here only what is safe in a signal handler may be called: other threads may have held any mutex at the
/// fork().
void Guardian::wait_for_our_end(int pipe) const noexcept {
    ::setsid();
    take_a_name();
    close_all_but(pipe);
    char byte = 0;
    while (::read(pipe, &byte, 1) < 0 && errno == EINTR) {
    }
    if (const pid_t group = shared_->group; group > 1) end(group);
    ::_exit(0);
}

void Guardian::end(pid_t group) const noexcept {
    auto& clock = boot_clock();
    const auto now = clock.now();
    (void)signal_group(group, kills_ && grace_ <= 0ns ? SIGKILL : SIGTERM);
    if (!kills_) return;
    const Clock::time_point lease_ends{Clock::duration{shared_->lease_ends}};
    const auto kill_at = std::min(now + grace_, lease_ends);
    const auto give_up_at = std::max(now, kill_at) + 10s;  // what cannot be killed
    for (auto instant = now; group_exists(group) && instant < give_up_at; instant = clock.now()) {
        if (instant >= kill_at) (void)signal_group(group, SIGKILL);
        pause(5ms);
    }
}

}  // namespace redlock::tool
