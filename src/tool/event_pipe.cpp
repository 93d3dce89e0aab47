#include "event_pipe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>

namespace redlock::tool {
namespace {

std::atomic<int> writing_end = -1;
static_assert(std::atomic<int>::is_always_lock_free);  // a signal handler reads it

}  // namespace

extern "C" {
static void redlock_tool_on_signal(int signal) {
    const int error = errno;
    EventPipe::post(signal);
    errno = error;
}
}

EventPipe::EventPipe() {
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask_before_);
    if (::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0)
        throw std::system_error{errno, std::generic_category(), "pipe"};
    writing_end = pipe_[1];
}

/// What signals do from now on makes no difference: the program is about to end.
EventPipe::~EventPipe() {
    writing_end = -1;
    for (const int fd : pipe_) ::close(fd);
}

void EventPipe::catch_signals(std::initializer_list<int> signals) {
    sigset_t all;
    sigset_t mask;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &mask);  // what was ignored is not to be caught, not for a moment
    for (const int signal : signals) {
        struct sigaction ours {};
        ours.sa_handler = redlock_tool_on_signal;
        ours.sa_flags = SA_RESTART;
        struct sigaction before {};
        ::sigaction(signal, &ours, &before);
        if (before.sa_handler == SIG_IGN && signal != SIGCHLD) {
            ::sigaction(signal, &before, nullptr);
            continue;
        }
        before_.try_emplace(signal, before);
        ::sigdelset(&mask, signal);
    }
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void EventPipe::ignore(int signal) {
    struct sigaction ours {};
    ours.sa_handler = SIG_IGN;
    struct sigaction before {};
    ::sigaction(signal, &ours, &before);
    before_.try_emplace(signal, before);
}

void EventPipe::restore_all() const noexcept {
    for (const auto& [signal, before] : before_) ::sigaction(signal, &before, nullptr);
}

void EventPipe::restore_mask() const noexcept {
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

/// A full pipe wakes as well as one byte more would.
void EventPipe::post(int event) noexcept {
    const auto byte = static_cast<signed char>(event);
    [[maybe_unused]] const auto written = ::write(writing_end, &byte, 1);
}

std::optional<int> EventPipe::wait(Clock::time_point deadline) {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - boot_clock().now()).count();
        pollfd readable{pipe_[0], POLLIN, 0};
        constexpr decltype(left) longest = 3'600'000;
        if (::poll(&readable, 1, static_cast<int>(std::clamp(left, decltype(left){0}, longest))) < 0)
            continue;
        signed char byte = 0;
        if (::read(pipe_[0], &byte, 1) == 1) return byte;
        if (boot_clock().now() >= deadline) return std::nullopt;
    }
}

}  // namespace redlock::tool
