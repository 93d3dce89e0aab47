// A program run as a child process that cannot outlive its parent.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace redlock::support {

/// What to run. No shell is involved.
struct Program {
    std::vector<std::string> words;          ///< the program, looked up in PATH, and its arguments
    std::vector<std::string> environment{};  ///< "NAME=value", in addition to ours or in place of it
    std::filesystem::path output{};          ///< where it appends its output and errors; empty: to ours
};

/// The child runs in a session of its own, so Ctrl-C in a terminal reaches the parent alone. When the parent
/// dies, however it dies, the kernel kills the child. Start and destroy it in the same process; which thread
/// does so does not matter. One thread at a time.
class ChildProcess {
public:
    /// Throws std::system_error when no process can be made. A program that cannot be executed is a child
    /// that exits with status 127 and prints the reason.
    explicit ChildProcess(const Program& program);

    /// Kills it if it still runs.
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    pid_t pid() const noexcept { return pid_; }
    bool running();

    /// SIGSTOP and SIGCONT; they return when the kernel shows the process as stopped, and as going on.
    void freeze();
    void thaw();

    /// SIGKILL, also when frozen; returns when the process is gone.
    void kill();

    /// Waits for its end: the exit status, or 128 + the signal that ended it, as the shell has it.
    int wait();

private:
    void signal(int number) const;
    bool frozen() const;
    bool reap(int flags);

    pid_t parent_;
    pid_t pid_;
    std::optional<int> status_{};
};

}  // namespace redlock::support
