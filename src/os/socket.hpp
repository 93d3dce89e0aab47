// System calls on sockets and pipes, in a form that is the same on all systems.
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/error.hpp>
#include <redlock/process.hpp>

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <system_error>

#if !defined(MSG_NOSIGNAL)
#define MSG_NOSIGNAL 0  // on macOS open_socket() sets SO_NOSIGPIPE instead
#endif

namespace redlock {

/// The cause of a failure for want of descriptors, memory or threads, in this process or in the system. The
/// node has not failed then. A report has Errc::connection_failed in place of this cause.
inline std::error_code shortage() noexcept {
    return std::make_error_code(std::errc::resource_unavailable_try_again);
}
/// Returns shortage() if this errno is one, otherwise Errc::connection_failed.
std::error_code cause_of_errno(int error) noexcept;

/// Returns a socket that does not block, is closed on exec and raises no SIGPIPE. Returns -1 and sets errno
/// on failure. `keepalive` is NodesOptions::tcp_keepalive.
int open_socket(int family, std::chrono::seconds keepalive);

/// A pipe by which one thread lets another one return from poll(). Both ends are closed on exec. In a child
/// of fork(), which has copies of them, the functions do nothing, and the destructor does not close them.
class Pipe : detail::NotCopied {
public:
    Pipe() noexcept;
    ~Pipe();

    /// Returns the end to read and the end to write. Both are -1 if there is no descriptor left.
    const std::array<int, 2>& ends() const noexcept { return ends_; }
    int read_end() const noexcept { return ends_[0]; }
    /// Makes the read end readable.
    void write() const noexcept;

private:
    const std::int64_t process_ = this_process();
    std::array<int, 2> ends_{-1, -1};
};

/// Makes a socket of open_socket() blocking. Reading blocks for `longest` at most.
void make_blocking(int fd, std::chrono::milliseconds longest);

}  // namespace redlock
