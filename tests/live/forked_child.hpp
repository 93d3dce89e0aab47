// A copy of this process, made by fork(): a holder that can be killed, or a child that must not take its
// parent's locks for its own.
//
//     ForkedChild child{[&](auto report) {
//         report(lock.acquire() ? "held" : "not held");
//         ::pause();
//     }};
//     EXPECT_EQ(child.receive(), "held");
//     child.kill();
#pragma once

#include "support/wait_until.hpp"

#include <redlock/detail/not_copied.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>

namespace redlock::test {

/// The function with which the body of a child reports a line to its parent.
class Report {
public:
    explicit Report(int descriptor) noexcept : descriptor_(descriptor) {}

    void operator()(std::string line) const {
        line += '\n';
        [[maybe_unused]] const auto written = ::write(descriptor_, line.data(), line.size());
    }
    /// Returns the descriptor that the child needs for its reports.
    int descriptor() const noexcept { return descriptor_; }

private:
    int descriptor_;
};

class ForkedChild : detail::NotCopied {
public:
    /// Runs `body(report)` in the child. The child then ends without destructors, with status 0, or 1 after
    /// an exception.
    template <class Body>
    explicit ForkedChild(Body body) {
        int ends[2];
        if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
        pid_ = ::fork();
        if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
        if (pid_ == 0) {
            ::close(ends[0]);
            run(body, ends[1]);
        }
        ::close(ends[1]);
        read_end_ = ends[0];
    }
    ~ForkedChild() {
        kill();
        ::close(read_end_);
    }

    /// Returns the next reported line. It is empty if the child has ended, and "(no answer)" after two
    /// minutes (see support::wait_until()).
    std::string receive() const {
        std::string line;
        for (char byte = 0;;) {
            pollfd readable{read_end_, POLLIN, 0};
            if (::poll(&readable, 1, 120'000) <= 0) return "(no answer)";
            if (::read(read_end_, &byte, 1) != 1 || byte == '\n') return line;
            line += byte;
        }
    }

    pid_t pid() const noexcept { return pid_; }

    void kill() {
        if (running()) ::kill(pid_, SIGKILL);
        (void)wait();
    }

    /// Sends SIGSTOP. Returns when the child has stopped.
    void freeze() {
        if (!running()) return;
        ::kill(pid_, SIGSTOP);
        int status = 0;
        if (::waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status))
            throw std::runtime_error("the child does not stop");
    }
    void thaw() {
        if (running()) ::kill(pid_, SIGCONT);
    }

    /// Returns the exit status, or 128 + the number of the signal that ended the child.
    int wait() {
        int status = 0;
        if (status_ < 0 && ::waitpid(pid_, &status, 0) == pid_)
            status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        return status_;
    }

private:
    bool running() const noexcept { return status_ < 0; }

    template <class Body>
    [[noreturn]] static void run(Body& body, int write_end) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        try {
            body(Report{write_end});
            ::_exit(0);
        } catch (const std::exception&) {
            ::_exit(1);
        }
    }

    pid_t pid_ = 0;
    int read_end_ = -1;
    int status_ = -1;
};

}  // namespace redlock::test
