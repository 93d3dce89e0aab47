#include "terminal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

namespace redlock::tool {
namespace {

bool feeds_a_pipeline() {
    struct stat output {};
    return ::fstat(STDOUT_FILENO, &output) == 0 && (S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode));
}

}  // namespace

Terminal::Terminal() noexcept : fd_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}

Terminal::~Terminal() {
    if (fd_ >= 0) ::close(fd_);
}

bool Terminal::ours() const noexcept {
    return exists() && is_of(::getpgrp());
}

bool Terminal::is_of(pid_t group) const noexcept {
    return fd_ >= 0 && ::tcgetpgrp(fd_) == group;
}

bool Terminal::free_to_give() const noexcept {
    return ours() && ::isatty(STDIN_FILENO) != 0 && !feeds_a_pipeline();
}

/// Blocks SIGTTOU meanwhile, because otherwise the kernel would stop a background process for this call.
void Terminal::give_to(pid_t group) const noexcept {
    if (fd_ < 0) return;
    sigset_t ttou;
    sigset_t before;
    ::sigemptyset(&ttou);
    ::sigaddset(&ttou, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &ttou, &before);
    ::tcsetpgrp(fd_, group);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace redlock::tool
