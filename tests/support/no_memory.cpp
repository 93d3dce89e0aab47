// A library to preload into `redlock run`. The main thread gets no memory once: when it allocates for the
// first time after it has begun to wait for the end of its command.
#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace {

std::atomic<int> waits{0};
std::atomic<int> refusals{0};

bool is_main_thread() noexcept {
    return ::syscall(SYS_gettid) == ::getpid();
}

}  // namespace

extern "C" {

pid_t waitpid(pid_t process, int* status, int options) {
    using namespace std::string_view_literals;
    if (process == -1 && ::program_invocation_short_name == "redlock"sv) ++waits;
    return static_cast<pid_t>(::syscall(SYS_wait4, process, status, options, nullptr));
}

void* malloc(size_t size) noexcept {
    using Function = void* (*)(size_t);
    static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "malloc"));
    if (waits > 0 && is_main_thread() && refusals++ == 0) {
        errno = ENOMEM;
        return nullptr;
    }
    return real(size);
}
}
