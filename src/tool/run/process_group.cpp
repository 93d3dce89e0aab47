#include "process_group.hpp"

#include "process/exit_status.hpp"

#include <sys/prctl.h>

namespace redlock::tool {
namespace {

/// Returns pointers to the words, followed by those in `others`, if there are any, and a null pointer, which
/// also ends `others`.
std::vector<char*> pointers(const std::vector<std::string>& words, char** others = nullptr) {
    std::vector<char*> result;
    result.reserve(words.size() + 1);
    for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
    for (; others != nullptr && *others != nullptr; ++others) result.push_back(*others);
    result.push_back(nullptr);
    return result;
}

}  // namespace

ProcessGroup::ProcessGroup(const Start& start, const Signals& signals, const Terminal& terminal)
    : guardian_(start.guardian), failure_(shared_with_children<std::atomic<int>>("mmap")) {
    const auto words = pointers(start.words);
    const auto variables = pointers(start.environment, environ);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1UL);  // the processes that the program leaves behind become our children
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
        const bool is_orphan = end_ && ::getpgid(pid) == id_;  // left behind by the program
        if (pid != id_ && !is_orphan) continue;
        stopped_ = WIFSTOPPED(status);
        if (stopped_) stop_ = WSTOPSIG(status);
        if (pid == id_ && WIFCONTINUED(status)) continued_ = true;
        if (pid == id_ && (WIFEXITED(status) || WIFSIGNALED(status))) end_ = status;
    }
}

std::optional<int> ProcessGroup::status() const noexcept {
    if (!end_) return std::nullopt;
    return killed_by() != 0 ? exit_status::signalled + killed_by() : WEXITSTATUS(*end_);
}

}  // namespace redlock::tool
