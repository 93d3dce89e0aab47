#include "guardian.hpp"

#include "processes.hpp"

#include "os/scoped_signal_block.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

constexpr auto* name_in_errors = "the guardian of the command";

// Two processes use these, so they must not need a mutex. Clang on i386 says of std::atomic<std::int64_t>
// that it may need one, because a long long may have an alignment of 4 there. The atomic has an alignment
// of 8.
static_assert(std::atomic<pid_t>::is_always_lock_free);
static_assert(__atomic_always_lock_free(sizeof(std::int64_t), nullptr));
static_assert(alignof(std::atomic<std::int64_t>) == sizeof(std::int64_t));

/// Asks the kernel not to kill the guardian before the program when memory is short. A privileged process may
/// ask never to be killed. Any other process may only undo a setting that makes the kernel kill it first.
void ask_to_be_spared() noexcept {
    const int fd = ::open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    const auto ask = [fd](std::string_view score) { return ::write(fd, score.data(), score.size()) > 0; };
    char first = 0;
    if (!ask("-1000") && ::pread(fd, &first, 1, 0) == 1 && first > '0') (void)ask("0");
    ::close(fd);
}

void wait_for_end_of(int pipe) noexcept {
    char byte = 0;
    while (::read(pipe, &byte, 1) < 0 && errno == EINTR) {
    }
}

}  // namespace

Guardian::Guardian(bool kills, std::chrono::nanoseconds grace)
    : kills_(kills), grace_(grace), shared_(shared_with_children<Shared>(name_in_errors)) {
    const int error = ::pipe2(pipe_.data(), O_CLOEXEC) != 0 ? errno : start();
    if (error != 0) throw std::system_error{error, std::generic_category(), name_in_errors};
}

/// Kills the guardian, because a stopped guardian would not notice the end of the pipe.
Guardian::~Guardian() {
    shared_.group = 0;
    if (id_ > 1) ::kill(id_, SIGKILL);
    while (id_ > 1 && ::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

int Guardian::start() noexcept {
    std::array<int, 2> ready{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0) return errno;
    started_at_ = boot_clock().now();
    {
        const ScopedSignalBlock blocked;  // the guardian keeps them blocked, because it ends when we do
        id_ = ::fork();
        if (id_ == 0) wait_for_our_end(ready[1]);
    }
    const int error = id_ < 0 ? errno : 0;
    ::close(ready[1]);
    if (ready_ >= 0) ::close(ready_);
    ready_ = ready[0];
    return error;
}

void Guardian::guard(pid_t group) const noexcept {
    shared_.group = group;
    wait_for_end_of(ready_);
}

void Guardian::lease_ends(Clock::time_point instant) noexcept {
    shared_.lease_ends = instant.time_since_epoch().count();
    if (id_ < 0 && boot_clock().now() - started_at_ > 1s) (void)start();  // at most once a second
}

void Guardian::record_exit(pid_t process, int status) noexcept {
    if (process != id_) return;
    if (WIFSTOPPED(status)) ::kill(id_, SIGCONT);
    if (WIFEXITED(status) || WIFSIGNALED(status)) id_ = -1;
}

/// Runs in the guardian. May call only functions that are safe in a signal handler, because another thread
/// may have held any mutex at the fork().
void Guardian::wait_for_our_end(int ready) const noexcept {
    ::setsid();
    ::prctl(PR_SET_NAME, "redlock-guard");  // so that `pkill -x redlock` does not find it
    ask_to_be_spared();
    ::close(pipe_[1]);  // otherwise the guardian would wait for its own end
    ::close(ready);
    keep_descriptor(pipe_[0], STDIN_FILENO);
    wait_for_end_of(STDIN_FILENO);
    if (const pid_t group = shared_.group; group > 1) end(group);
    ::_exit(0);
}

void Guardian::end(pid_t group) const noexcept {
    auto& clock = boot_clock();
    const auto now = clock.now();
    (void)signal_group(group, kills_ && grace_ <= 0ns ? SIGKILL : SIGTERM);
    if (!kills_) return;
    const Clock::time_point lease_ends{Clock::duration{shared_.lease_ends}};
    const auto kill_at = std::min(now + grace_, lease_ends);
    const auto give_up_at = std::max(now, kill_at) + 10s;  // some processes cannot be killed
    for (auto instant = now; group_exists(group) && instant < give_up_at; instant = clock.now()) {
        if (instant >= kill_at) (void)signal_group(group, SIGKILL);
        ::poll(nullptr, 0, 5);  // only waits, for 5 ms
    }
}

}  // namespace redlock::tool
