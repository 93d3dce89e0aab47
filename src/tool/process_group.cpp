#include "process_group.hpp"

#include "exit_status.hpp"
#include "group_signals.hpp"
#include "os/scoped_signal_block.hpp"

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
#include <optional>
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

/// Ours, without what is hidden, and with additions in place of what has the same names.
std::vector<std::string> environment_of(const ProcessGroup::Start& start) {
    auto result = start.environment;
    for (char** it = environ; *it != nullptr; ++it) {
        const std::string_view entry{*it};
        const auto name = entry.substr(0, entry.find('=') + 1);
        const auto has_name = [&](const std::string& other) { return other.starts_with(name); };
        if (std::ranges::none_of(start.environment, has_name) && std::ranges::none_of(start.hidden, has_name))
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

/// The error that the child met before it became the command; none when it became it.
std::optional<int> read_failure(int fd) {
    int error = 0;
    const auto length = ::read(fd, &error, sizeof error);
    return length == static_cast<ssize_t>(sizeof error) ? std::optional{error} : std::nullopt;
}

}  // namespace

ProcessGroup::ProcessGroup(const Start& start, const EventPipe& events, const Terminal& terminal)
    : guardian_(start.guardian) {
    const auto environment = environment_of(start);
    const auto words = pointers(start.words);
    const auto variables = pointers(environment);
    std::array<int, 2> failure{};
    if (::pipe2(failure.data(), O_CLOEXEC | O_NONBLOCK) != 0)
        throw std::system_error{errno, std::generic_category(), "pipe"};
    adopt_orphans();
    {
        const ScopedSignalBlock blocked;  // no handler of ours runs in the child, and no signal is lost
        id_ = ::fork();
        if (id_ == 0) events.restore_all();
    }
    if (id_ == 0) become(start, words, variables, events, terminal, failure[1]);
    const int error = errno;
    ::close(failure[1]);
    failure_pipe_ = failure[0];
    if (id_ > 0) ::setpgid(id_, id_);  // the child does the same: one of the two is first
    if (id_ > 0) return;
    ::close(failure_pipe_);
    throw std::system_error{error, std::generic_category(), "fork"};
}

ProcessGroup::~ProcessGroup() {
    ::close(failure_pipe_);
}

/// In the child, where after fork() only what is safe in a signal handler may be called.
void ProcessGroup::become(const Start& start, const std::vector<char*>& words,
                          const std::vector<char*>& environment, const EventPipe& events,
                          const Terminal& terminal, int failure_pipe) noexcept {
    events.restore_mask();
    ::setpgid(0, 0);
    if (start.in_foreground) terminal.give_to(::getpid());
    if (start.guardian) start.guardian->guard(::getpid());
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
        if (guardian_) guardian_->note(pid, status);
        if (pid == id_)
            note(status);
        else if (status_ && WIFSTOPPED(status) && ::getpgid(pid) == id_)
            stop_ = WSTOPSIG(status);  // an orphan of the command's
    }
}

void ProcessGroup::note(int status) noexcept {
    if (WIFSTOPPED(status)) stop_ = WSTOPSIG(status);
    if (WIFEXITED(status)) status_ = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) killed_by_ = WTERMSIG(status);
    if (WIFSIGNALED(status)) status_ = exit_status::signalled + WTERMSIG(status);
    if (status_) failure_ = read_failure(failure_pipe_);
}

std::optional<int> ProcessGroup::take_stop() noexcept {
    return std::exchange(stop_, std::nullopt);
}

bool ProcessGroup::alive() const noexcept {
    return !status_ || group_exists(id_);
}

bool ProcessGroup::signal(int number) const noexcept {
    return signal_group(id_, number);
}

}  // namespace redlock::tool
