// System calls on sockets and pipes, in a form that is the same on all systems.
#pragma once

#include <sys/socket.h>

#include <array>
#include <chrono>

#if !defined(MSG_NOSIGNAL)
#define MSG_NOSIGNAL 0  // on macOS open_socket() sets SO_NOSIGPIPE instead
#endif

namespace redlock {

/// Returns a socket that does not block, is closed on exec and raises no SIGPIPE. Returns -1 and sets errno
/// on failure. `keepalive` is NodesOptions::tcp_keepalive.
int open_socket(int family, std::chrono::seconds keepalive);

/// Creates a pipe whose ends are closed on exec. ends[0] is the end to read, and ends[1] the end to write.
/// Returns false on failure.
bool make_pipe(std::array<int, 2>& ends);

/// Makes a socket of open_socket() blocking. Reading blocks for `longest` at most.
void make_blocking(int fd, std::chrono::milliseconds longest);

/// Makes close() discard the bytes that the kernel has not sent yet.
void drop_unsent(int fd);

}  // namespace redlock
