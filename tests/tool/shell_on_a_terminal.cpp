#include "shell_on_a_terminal.hpp"

#include "support/child_process.hpp"
#include "support/wait_until.hpp"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <system_error>

namespace redlock::test {

ShellOnATerminal::ShellOnATerminal(const std::vector<std::string>& environment) {
    auto words = support::joined(support::joined({"env", "PS1=$ "}, environment),
                                 {"bash", "--norc", "--noprofile", "--noediting", "-i"});
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    shell_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (shell_ < 0) return;
    if (shell_ == 0) {
        ::execvp(arguments.front(), arguments.data());
        ::_exit(127);
    }
    // Without a history file the shell leaves nothing in the home directory. Without an echo nobody mistakes
    // what is typed for an answer.
    enter("unset HISTFILE; stty -echo");
    if (!is_back()) throw std::runtime_error{"no shell: " + screen_};
}

ShellOnATerminal::~ShellOnATerminal() {
    close();
    if (shell_ < 0) return;
    const auto gone = [this] { return ::waitpid(shell_, nullptr, WNOHANG) != 0; };
    if (support::wait_until(gone)) return;
    ::kill(shell_, SIGKILL);
    ::waitpid(shell_, nullptr, 0);
}

void ShellOnATerminal::close() {
    if (terminal_ >= 0) ::close(terminal_);
    terminal_ = -1;
}

void ShellOnATerminal::type(const std::string& keys) {
    if (::write(terminal_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
        throw std::system_error{errno, std::generic_category(), "typing"};
}

void ShellOnATerminal::widen() {
    winsize size{};
    ::ioctl(terminal_, TIOCGWINSZ, &size);
    ++size.ws_col;
    ::ioctl(terminal_, TIOCSWINSZ, &size);
}

bool ShellOnATerminal::shows(const std::string& text) {
    return support::wait_until([&] {
        const auto at = screen_.find(text, seen_);
        if (at != screen_.npos) seen_ = at + text.size();
        return at != screen_.npos || (read_some() && false);
    });
}

/// The answer differs from the question, for the terminal may still echo it.
bool ShellOnATerminal::is_back() {
    const auto number = std::to_string(++questions_);
    enter("echo back''" + number + "!");
    return shows("back" + number + "!");
}

bool ShellOnATerminal::read_some() {
    pollfd readable{terminal_, POLLIN, 0};
    if (::poll(&readable, 1, 0) <= 0) return false;
    std::array<char, 4096> bytes{};
    const auto length = ::read(terminal_, bytes.data(), bytes.size());
    if (length > 0) screen_.append(bytes.data(), static_cast<std::size_t>(length));
    return length > 0;
}

}  // namespace redlock::test
