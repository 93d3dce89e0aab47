#include "simulated_time.hpp"

#include "claim.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <span>

namespace redlock::fuzz {
namespace {

SimulatedTime* the_current = nullptr;

}  // namespace

SimulatedTime::SimulatedTime(Surroundings& surroundings) : surroundings_(surroundings) {
    claim(the_current == nullptr, "one time at a time");
    the_current = this;
}

SimulatedTime::~SimulatedTime() {
    the_current = nullptr;
}

SimulatedTime* SimulatedTime::current() noexcept {
    return the_current;
}

void SimulatedTime::sleep_until(time_point until, std::stop_token stop) {
    claim(until < never(), "no sleep without an end");
    wait(until, [&] { return stop.stop_requested(); });
}

std::error_code SimulatedTime::fill(std::span<std::byte> out) noexcept {
    for (auto& byte : out) byte = static_cast<std::byte>(random_() & 0xFFU);
    return {};
}

}  // namespace redlock::fuzz

// ---- What the linker puts in the place of the system's functions. Where no time is simulated: theirs.

using redlock::fuzz::SimulatedTime;

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the names that ld --wrap gives
int __real_poll(pollfd* fds, nfds_t count, int timeout);
ssize_t __real_recv(int fd, void* buffer, std::size_t size, int flags);
int __real_clock_gettime(clockid_t clock, timespec* time);
int __real_getentropy(void* buffer, std::size_t size);

int __wrap_poll(pollfd* fds, nfds_t count, int timeout) {
    auto* const time = SimulatedTime::current();
    if (!time) return __real_poll(fds, count, timeout);
    redlock::fuzz::claim(timeout >= 0, "no wait without an end");
    int ready = 0;
    time->wait(time->now() + std::chrono::milliseconds{timeout}, [&] {
        ready = __real_poll(fds, count, 0);
        return ready != 0;
    });
    return ready;
}

/// One that blocks does so for SO_RCVTIMEO at most.
ssize_t __wrap_recv(int fd, void* buffer, std::size_t size, int flags) {
    auto* const time = SimulatedTime::current();
    if (!time || (flags & MSG_DONTWAIT) != 0) return __real_recv(fd, buffer, size, flags);
    timeval longest{};
    socklen_t length = sizeof longest;
    ::getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &longest, &length);
    const auto wait = std::chrono::seconds{longest.tv_sec} + std::chrono::microseconds{longest.tv_usec};
    redlock::fuzz::claim(wait > wait.zero(), "no wait without an end");
    ssize_t received = -1;
    time->wait(time->now() + wait, [&] {
        received = __real_recv(fd, buffer, size, flags | MSG_DONTWAIT);
        return received >= 0 || errno != EAGAIN;
    });
    return received;
}

int __wrap_clock_gettime(clockid_t clock, timespec* time) {
    auto* const simulated = SimulatedTime::current();
    if (!simulated || clock != CLOCK_BOOTTIME) return __real_clock_gettime(clock, time);
    const auto now = simulated->read().time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
    *time = {.tv_sec = seconds.count(), .tv_nsec = (now - seconds).count()};
    return 0;
}

int __wrap_getentropy(void* buffer, std::size_t size) {
    auto* const time = SimulatedTime::current();
    if (!time) return __real_getentropy(buffer, size);
    (void)time->fill({static_cast<std::byte*>(buffer), size});
    return 0;
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
