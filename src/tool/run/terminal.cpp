#include "terminal.hpp"

#include "os/scoped_signal_block.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace redlock::tool {

Terminal::Terminal() noexcept : fd_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}

bool Terminal::free_to_give() const noexcept {
    struct stat output {};
    (void)::fstat(STDOUT_FILENO, &output);
    const bool feeds_a_pipeline = S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode);
    return ours() && ::isatty(STDIN_FILENO) != 0 && !feeds_a_pipeline;
}

/// Blocks SIGTTOU meanwhile, because otherwise the kernel would stop a background process for this call.
void Terminal::give_to(pid_t group) const noexcept {
    if (fd_ < 0) return;
    const ScopedSignalBlock blocked;
    ::tcsetpgrp(fd_, group);
}

}  // namespace redlock::tool
