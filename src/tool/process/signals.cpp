#include "signals.hpp"

#include "exit_status.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace redlock::tool {
namespace {

/// Returns true if the process ignores the signal. The kernel keeps a blocked signal for sigtimedwait() even
/// then.
bool is_ignored(int signal) noexcept {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

/// Sets SIGCHLD to its default, because a process that ignores it is not notified of the end of a child.
Signals::Signals(std::initializer_list<int> signals) noexcept {
    for (auto& [signal, handler] : changed_) handler = ::signal(signal, handler);
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask_before_);
    ::sigemptyset(&awaited_);
    add({SIGCHLD});
    add(signals);
}

void Signals::add(std::initializer_list<int> signals) noexcept {
    for (const int signal : signals) ::sigaddset(&awaited_, signal);
    ::pthread_sigmask(SIG_BLOCK, &awaited_, nullptr);
}

void Signals::restore() const noexcept {
    for (const auto& [signal, handler] : changed_) (void)::signal(signal, handler);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<int> Signals::wait(Clock::time_point deadline) const noexcept {
    using namespace std::chrono;
    for (;;) {
        const auto left =
            std::clamp<Clock::duration>(deadline - boot_clock().now(), Clock::duration::zero(), 1h);
        const auto whole = floor<seconds>(left);
        const timespec most{.tv_sec = static_cast<std::time_t>(whole.count()),  // 32 bits on some machines
                            .tv_nsec = static_cast<long>(nanoseconds{left - whole}.count())};
        const int signal = ::sigtimedwait(&awaited_, nullptr, &most);
        if (signal == SIGCHLD || (signal > 0 && !is_ignored(signal))) return signal;
        if (boot_clock().now() >= deadline) return std::nullopt;
    }
}

int die_of(int signal) {
    // Not by RLIMIT_CORE, which the kernel ignores if it passes the memory to a program.
    ::prctl(PR_SET_DUMPABLE, 0UL);
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, signal);
    (void)::signal(signal, SIG_DFL);
    (void)::raise(signal);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    return exit_status::signalled + signal;
}

}  // namespace redlock::tool
