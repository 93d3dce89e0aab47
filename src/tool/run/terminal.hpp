// The controlling terminal, and which process group is its foreground group.
#pragma once

#include <sys/types.h>
#include <unistd.h>

namespace redlock::tool {

class Terminal {
public:
    /// The descriptor stays open, because redlock is about to end after the program.
    Terminal() noexcept;

    /// Return true if the process group of this process, or `group`, is the foreground group.
    bool ours() const noexcept { return is_of(::getpgrp()); }
    bool is_of(pid_t group) const noexcept { return exists() && ::tcgetpgrp(fd_) == group; }

    /// Returns true if a program should be in the foreground from the start: this process is in the
    /// foreground, its input comes from a terminal, and its output does not go to a pipeline that may need
    /// the terminal.
    bool free_to_give() const noexcept;

    /// Makes `group` the foreground group. Does nothing if there is no terminal. Safe between fork() and
    /// exec().
    void give_to(pid_t group) const noexcept;

    /// Returns true if there is a controlling terminal.
    bool exists() const noexcept { return fd_ >= 0; }

private:
    int fd_;
};

}  // namespace redlock::tool
