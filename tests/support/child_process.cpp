#include "support/child_process.hpp"

#include "support/process_files.hpp"
#include "support/wait_until.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace redlock::support {

namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> result;
    result.reserve(strings.size() + 1);
    for (auto& string : strings) result.push_back(string.data());
    result.push_back(nullptr);
    return result;
}

std::string_view name_of(std::string_view assignment) {
    return assignment.substr(0, assignment.find('='));
}

/// Returns our environment with the additions. An addition replaces a variable of the same name.
std::vector<std::string> environment_with(const std::vector<std::string>& additions) {
    auto result = additions;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        bool replaced = false;
        for (const auto& addition : additions) replaced = replaced || name_of(addition) == name_of(*entry);
        if (!replaced) result.emplace_back(*entry);
    }
    return result;
}

/// Everything that the child needs between fork and exec. The child must not allocate there, because another
/// thread may have held the lock of the allocator at the fork.
class Image {
public:
    explicit Image(const Program& program)
        : words_(program.words),
          environment_(environment_with(program.environment)),
          argv_(pointers(words_)),
          envp_(pointers(environment_)) {
        if (words_.empty()) throw std::invalid_argument("ChildProcess: there is no program to run");
        if (!program.output.empty()) open_output(program.output);
    }
    ~Image() {
        if (output_ >= 0) ::close(output_);
    }
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;

    /// Turns the child into the program. Runs in the child.
    [[noreturn]] void become(pid_t parent) const {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(127);  // the parent died before the prctl() above
        ::setsid();
        restore_signals();
        if (output_ >= 0) {
            ::dup2(output_, STDOUT_FILENO);
            ::dup2(output_, STDERR_FILENO);
        }
        ::execvpe(argv_[0], argv_.data(), envp_.data());
        complain("cannot execute ");
        complain(argv_[0]);
        complain("\n");
        ::_exit(127);
    }

private:
    void open_output(const std::filesystem::path& path) {
        output_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (output_ < 0) fail(path.string());
    }

    static void restore_signals() {
        (void)::signal(SIGPIPE, SIG_DFL);
        sigset_t none;
        ::sigemptyset(&none);
        ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    }

    static void complain(const char* text) {
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
    }

    std::vector<std::string> words_;
    std::vector<std::string> environment_;
    std::vector<char*> argv_;
    std::vector<char*> envp_;
    int output_ = -1;
};

/// The thread that forks all children. PR_SET_PDEATHSIG takes effect when the forking *thread* ends, and a
/// test may start a server from a short-lived thread. This thread lasts as long as the process, and the
/// object is never destroyed.
class Nursery {
public:
    static Nursery& instance() {
        static auto* const nursery = new Nursery;
        return *nursery;
    }

    pid_t fork_into(const Image& image) {
        if (::getpid() != process_) throw std::logic_error("ChildProcess: not after fork() without exec()");
        std::packaged_task<pid_t()> task([&image, parent = process_] {
            const auto pid = ::fork();
            if (pid == 0) image.become(parent);
            if (pid < 0) fail("fork");
            return pid;
        });
        auto pid = task.get_future();
        {
            const std::lock_guard guard{mutex_};
            wanted_.push_back(std::move(task));
        }
        changed_.notify_one();
        return pid.get();
    }

private:
    /// Blocks all signals in the new thread, because signals to the process are for the threads of the test.
    /// A std::thread would own memory that is never freed, and a leak checker might report it.
    Nursery() {
        sigset_t all;
        sigset_t ours;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &ours);
        const auto serve = [](void* self) -> void* { static_cast<Nursery*>(self)->serve(); };
        pthread_t thread{};
        const int error = ::pthread_create(&thread, nullptr, serve, this);
        ::pthread_sigmask(SIG_SETMASK, &ours, nullptr);
        if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_create");
        ::pthread_detach(thread);
    }

    [[noreturn]] void serve() {
        for (;;) next()();
    }

    std::packaged_task<pid_t()> next() {
        std::unique_lock guard{mutex_};
        changed_.wait(guard, [this] { return !wanted_.empty(); });
        auto task = std::move(wanted_.front());
        wanted_.pop_front();
        return task;
    }

    const pid_t process_ = ::getpid();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::packaged_task<pid_t()>> wanted_;  // guarded by mutex_
};

}  // namespace

ChildProcess::ChildProcess(const Program& program)
    : parent_(::getpid()), pid_(Nursery::instance().fork_into(Image{program})) {}

ChildProcess::~ChildProcess() {
    if (::getpid() == parent_) kill();
}

bool ChildProcess::running() {
    return !reap(WNOHANG);
}

void ChildProcess::freeze() {
    signal(SIGSTOP);
    if (!wait_until([this] { return frozen(); })) throw std::runtime_error("the child does not freeze");
}

void ChildProcess::thaw() {
    signal(SIGCONT);
    if (!wait_until([this] { return !frozen(); })) throw std::runtime_error("the child does not thaw");
}

void ChildProcess::kill() {
    signal(SIGKILL);
    wait();
}

int ChildProcess::wait() {
    reap(0);
    return *status_;
}

/// Sends nothing after the end of the process, because its number may then belong to another one.
void ChildProcess::signal(int number) const {
    if (!status_) ::kill(pid_, number);
}

bool ChildProcess::frozen() const {
    return state_of(std::to_string(pid_)) == 'T';
}

bool ChildProcess::reap(int flags) {
    if (status_) return true;
    int status = 0;
    pid_t result = 0;
    do {
        result = ::waitpid(pid_, &status, flags);
    } while (result < 0 && errno == EINTR);
    if (result == 0) return false;
    if (result < 0)
        status_ = 127;  // another caller of wait() has reaped it
    else
        status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}

}  // namespace redlock::support
