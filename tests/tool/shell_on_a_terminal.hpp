// A terminal with an interactive shell on it, and somebody who types.
#pragma once

#include <redlock/detail/not_copied.hpp>

#include <sys/types.h>

#include <string>
#include <vector>

namespace redlock::test {

/// bash with job control on a pseudo-terminal of its own, in a session of its own.
class ShellOnATerminal : detail::NotCopied {
public:
    /// `environment`: "NAME=value", in addition to ours.
    explicit ShellOnATerminal(const std::vector<std::string>& environment);

    /// Closes the window, and waits for the shell's end.
    ~ShellOnATerminal();

    /// False where the machine has no pseudo-terminals: then there is no shell, either.
    bool exists() const noexcept { return shell_ > 0; }

    void type(const std::string& keys);
    void enter(const std::string& line) { type(line + "\n"); }
    void interrupt() { type("\x03"); }  // Ctrl-C
    void suspend() { type("\x1a"); }    // Ctrl-Z
    void quit() { type("\x1c"); }       // Ctrl-\, which must not be the last character of a comment

    /// Makes the window one column wider.
    void widen();

    /// Reads until `text` has come since the last call that found something; false if it does not.
    bool shows(const std::string& text);

    /// Whether the shell takes commands: it has the terminal and does what it is told.
    bool is_back();

    void close();

    /// Everything that was shown.
    const std::string& screen() const noexcept { return screen_; }

private:
    bool read_some();

    int terminal_ = -1;
    pid_t shell_ = -1;
    int questions_ = 0;
    std::string screen_{};
    std::size_t seen_ = 0;
};

}  // namespace redlock::test
