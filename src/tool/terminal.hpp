// The controlling terminal, and which process group has it.
#pragma once

#include <sys/types.h>

namespace redlock::tool {

class Terminal {
public:
    Terminal() noexcept;
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    /// Whether our own process group has it, or `group` does.
    bool ours() const noexcept;
    bool is_of(pid_t group) const noexcept;

    /// Whether a command is to have it from the start: it is ours, our input comes from it, and no pipeline
    /// behind us may need it.
    bool free_to_give() const noexcept;

    /// Gives it to `group`, or nothing happens where there is none. Safe between fork() and exec().
    void give_to(pid_t group) const noexcept;

    /// Whether there is one at all.
    bool exists() const noexcept { return fd_ >= 0; }

private:
    int fd_;
};

}  // namespace redlock::tool
