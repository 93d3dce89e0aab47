#include "process_group.hpp"

#include "exit_status.hpp"
#include "signals_blocked.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>

namespace redlock::tool {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> result;
    result.reserve(words.size() + 1);
    for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
    result.push_back(nullptr);
    return result;
}

/// Ours, with `ours` in place of what has the same names.
std::vector<std::string> environment_with(const std::vector<std::string>& additions) {
    std::vector<std::string> result = additions;
    for (char** it = environ; *it != nullptr; ++it) {
        const std::string_view entry{*it};
        const auto name = entry.substr(0, entry.find('=') + 1);
        if (std::ranges::none_of(additions, [&](const auto& ours) { return ours.starts_with(name); }))
            result.emplace_back(entry);
    }
    return result;
}

/// What the command left behind becomes ours to wait for, not init's.
void adopt_orphans() {
#if defined(__linux__)
    ::prctl(PR_SET_CHILD_SUBREAPER, 1UL);
#endif
}

void die_with(pid_t parent) {
#if defined(__linux__)
    ::prctl(PR_SET_PDEATHSIG, static_cast<unsigned long>(SIGTERM));
    if (::getppid() != parent) ::_exit(exit_status::internal);
#else
    (void)parent;
#endif
}

/// The error that the child met before it became the command; 0 when it became it.
int read_failure(int fd) {
    int error = 0;
    ssize_t length = 0;
    do {
        length = ::read(fd, &error, sizeof error);
    } while (length < 0 && errno == EINTR);
    return length == static_cast<ssize_t>(sizeof error) ? error : 0;
}

}  // namespace

ProcessGroup::ProcessGroup(const Start& start, const Alarm& alarm, const Terminal& terminal) {
    const auto environment = environment_with(start.environment);
    const auto words = pointers(start.words);
    const auto variables = pointers(environment);
    std::array<int, 2> failure{};
    if (::pipe2(failure.data(), O_CLOEXEC) != 0)
        throw std::system_error{errno, std::generic_category(), "pipe"};
    adopt_orphans();
    const auto parent = ::getpid();
    {
        const SignalsBlocked blocked;  // no handler of ours runs in the child, and no signal is lost
        id_ = ::fork();
        if (id_ == 0) alarm.restore_all();
    }
    if (id_ == 0) become(start, words, variables, terminal, failure[1], parent);
    ::close(failure[1]);
    const int error = id_ < 0 ? errno : read_failure(failure[0]);
    ::close(failure[0]);
    if (id_ < 0) throw std::system_error{error, std::generic_category(), "fork"};
    ::setpgid(id_, id_);  // as the child does: whoever comes first
    if (start.in_foreground) terminal.give_to(id_);
    if (error != 0)
        std::cerr << "redlock: " << start.words.front() << ": " << std::generic_category().message(error)
                  << '\n';
}

/// In the child, where after fork() only what is safe in a signal handler may be called.
void ProcessGroup::become(const Start& start, const std::vector<char*>& words,
                          const std::vector<char*>& environment, const Terminal& terminal, int failure_pipe,
                          pid_t parent) noexcept {
    ::setpgid(0, 0);
    if (start.in_foreground) terminal.give_to(::getpid());
    if (start.dies_with_us) die_with(parent);
    ::execvpe(words.front(), words.data(), environment.data());
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(failure_pipe, &error, sizeof error);
    ::_exit(error == ENOENT ? exit_status::not_found : exit_status::not_executable);
}

void ProcessGroup::look() {
    for (;;) {
        int status = 0;
        const auto pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
        if (pid < 0 && errno == EINTR) continue;
        if (pid <= 0) return;
        if (pid == id_) note(status);
    }
}

void ProcessGroup::note(int status) noexcept {
    if (WIFSTOPPED(status)) stop_ = WSTOPSIG(status);
    if (WIFEXITED(status)) status_ = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) status_ = exit_status::signalled + WTERMSIG(status);
}

std::optional<int> ProcessGroup::take_stop() noexcept {
    return std::exchange(stop_, std::nullopt);
}

/// The number of the group is nobody else's while a process of it is left, so there is no other to mistake
/// for it but in the instant after the last has gone.
bool ProcessGroup::alive() const noexcept {
    return !status_ || ::kill(-id_, 0) == 0 || errno == EPERM;
}

void ProcessGroup::signal(int number) const noexcept {
    ::kill(-id_, number);
    if (number != SIGTSTP && number != SIGCONT) ::kill(-id_, SIGCONT);
}

}  // namespace redlock::tool
