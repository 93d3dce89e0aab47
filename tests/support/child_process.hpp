// A program that runs as a child process and cannot outlive its parent.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace redlock::support {

/// Returns the words of both lists, such as a program and its arguments.
inline std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// The program to run. No shell is involved.
struct Program {
    std::vector<std::string> words;          ///< the program, looked up in PATH, and its arguments
    std::vector<std::string> environment{};  ///< "NAME=value"; adds to our environment or replaces in it
    /// the file to which its output and errors are appended; empty: ours
    std::filesystem::path output{};
};

/// The child runs in a session of its own, so Ctrl-C in a terminal reaches only the parent. When the parent
/// dies for any reason, the kernel kills the child. Start and destroy the child in the same process, from any
/// threads. Use it from one thread at a time.
class ChildProcess {
public:
    /// Throws std::system_error if no process can be created. If the program cannot be executed, the child
    /// prints the reason and exits with status 127.
    explicit ChildProcess(const Program& program);

    /// Kills the child if it still runs.
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    pid_t pid() const noexcept { return pid_; }
    bool running();

    /// Send SIGSTOP or SIGCONT. They return when the kernel shows the process as stopped, or as running
    /// again.
    void freeze();
    void thaw();

    /// Sends SIGKILL, which also ends a frozen process. Returns when the process is gone.
    void kill();

    /// Waits for the end of the process. Returns the exit status, or 128 + the number of the signal, as a
    /// shell does.
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
