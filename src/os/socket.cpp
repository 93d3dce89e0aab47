#include "socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace redlock {

std::error_code cause_of_errno(int error) noexcept {
    const bool is_shortage = error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
    return is_shortage ? shortage() : make_error_code(Errc::connection_failed);
}

Pipe::Pipe() noexcept {
#if defined(__linux__)
    (void)!::pipe2(ends_.data(), O_CLOEXEC);
#else
    (void)!::pipe(ends_.data());
    for (const int end : ends_) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
}

Pipe::~Pipe() {
    if (ends_[0] < 0 || process_ != this_process()) return;
    for (const int end : ends_) ::close(end);
}

void Pipe::write() const noexcept {
    if (process_ == this_process()) (void)!::write(ends_[1], "", 1);
}

/// Has the kernel send a probe after this time without traffic, and again after thirds of it. After three
/// probes without an answer the connection is broken.
static void keep_alive(int fd, std::chrono::seconds idle) {
    if (idle.count() == 0) return;
    const auto set = [fd](int level, int option, std::chrono::seconds::rep value) {
        const auto number = static_cast<int>(value);
        ::setsockopt(fd, level, option, &number, sizeof number);
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(TCP_KEEPIDLE)
    set(IPPROTO_TCP, TCP_KEEPIDLE, idle.count());
#elif defined(TCP_KEEPALIVE)
    set(IPPROTO_TCP, TCP_KEEPALIVE, idle.count());
#endif
#if defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
    set(IPPROTO_TCP, TCP_KEEPINTVL, std::max<std::chrono::seconds::rep>(idle.count() / 3, 1));
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
#endif
}

int open_socket(int family, std::chrono::seconds keepalive) {
#if defined(SOCK_CLOEXEC)
    const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return fd;
#else
    const int fd = ::socket(family, SOCK_STREAM, 0);
    if (fd < 0) return fd;
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
#endif
    const int on = 1;
    if (family != AF_UNIX) {
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        keep_alive(fd, keepalive);
    }
#if defined(SO_NOSIGPIPE)
    ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    return fd;
}

void make_blocking(int fd, std::chrono::milliseconds longest) {
    ::fcntl(fd, F_SETFL, 0);  // open_socket() has set no other flag
    const auto wait = std::chrono::microseconds{longest}.count();
    const timeval most{
        .tv_sec = static_cast<decltype(timeval::tv_sec)>(wait / 1'000'000),  // 32 bits on some machines
        .tv_usec = static_cast<decltype(timeval::tv_usec)>(wait % 1'000'000)};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
}

}  // namespace redlock
