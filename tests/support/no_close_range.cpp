// Preloaded into a program, takes close_range() away from it, as kernels before Linux 5.9 have none.
#include <dlfcn.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>

extern "C" long syscall(long number, ...) noexcept {
    using Function = long (*)(long, ...);
    static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "syscall"));
    va_list list;
    va_start(list, number);
    long arguments[6];
    for (auto& argument : arguments) argument = va_arg(list, long);
    va_end(list);
    if (number == SYS_close_range) {
        errno = ENOSYS;
        return -1;
    }
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
