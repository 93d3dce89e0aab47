#include "process_group.hpp"

#include "exit_status.hpp"

#include <sys/wait.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <string_view>

namespace redlock::tool {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> result;
    result.reserve(words.size() + 1);
    for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
    result.push_back(nullptr);
    return result;
}

/// Returns the environment of the command. An added variable replaces ours of the same name.
std::vector<std::string> environment_of(const ProcessGroup::Start& start) {
    auto result = start.environment;
    for (char** it = environ; *it != nullptr; ++it) {
        const std::string_view entry{*it};
        const auto name = entry.substr(0, entry.find('=') + 1);
        const auto has_name = [&](const std::string& other) { return other.starts_with(name); };
        if (std::ranges::none_of(start.environment, has_name)) result.emplace_back(entry);
    }
    return result;
}

}  // namespace

ProcessGroup::ProcessGroup(const Start& start, const Signals& signals, const Terminal& terminal)
    : guardian_(start.guardian), failure_(shared_with_children<std::atomic<int>>("mmap")) {
    const auto environment = environment_of(start);
    const auto words = pointers(start.words);
    const auto variables = pointers(environment);
#if defined(__linux__)
    ::prctl(PR_SET_CHILD_SUBREAPER, 1UL);  // the processes that the command leaves behind become our children
#endif
    id_ = ::fork();
    if (id_ == 0) {  // from here on only functions that are safe in a signal handler
        signals.restore();
        ::setpgid(0, 0);
        if (start.in_foreground) terminal.give_to(::getpid());
        if (guardian_) guardian_->guard(::getpid());
        ::execvpe(words.front(), words.data(), variables.data());
        failure_ = errno;
        ::_exit(failure_ == ENOENT ? exit_status::not_found : exit_status::not_executable);
    }
    if (id_ < 0) throw std::system_error{errno, std::generic_category(), "fork"};
    ::setpgid(id_, id_);  // the child does the same, because either may be first
}

void ProcessGroup::refresh() {
    for (;;) {
        int status = 0;
        const auto pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (pid < 0 && errno == EINTR) continue;
        if (pid <= 0) return;
        if (guardian_) guardian_->record_exit(pid, status);
        const bool is_orphan = status_ && ::getpgid(pid) == id_;  // left behind by the command
        if (pid != id_ && !is_orphan) continue;
        stopped_ = WIFSTOPPED(status);
        if (stopped_) stop_ = WSTOPSIG(status);
        if (pid != id_) continue;
        if (WIFCONTINUED(status)) continued_ = true;
        if (WIFEXITED(status)) status_ = WEXITSTATUS(status);
        if (WIFSIGNALED(status)) killed_by_ = WTERMSIG(status);
        if (WIFSIGNALED(status)) status_ = exit_status::signalled + WTERMSIG(status);
    }
}

}  // namespace redlock::tool
