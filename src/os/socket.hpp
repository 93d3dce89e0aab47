// The few words that sockets are spoken to with, the same on every system.
#pragma once

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>

#if !defined(MSG_NOSIGNAL)
#define MSG_NOSIGNAL 0  // macOS: SO_NOSIGPIPE on the socket does it
#endif

namespace redlock {

/// A socket that is non-blocking, closed on exec and raises no SIGPIPE; -1 if there is none to be had.
int open_socket(int family);

/// The two ends of a pipe, to read and to write, closed on exec; false if there is none to be had.
bool make_pipe(std::array<int, 2>& ends);

/// From now on it blocks, reading for `longest` at most.
void make_blocking(int fd, std::chrono::milliseconds longest);

/// Closing it will not send what the kernel still has to send.
void drop_unsent(int fd);

std::string errno_message(int error);

}  // namespace redlock
