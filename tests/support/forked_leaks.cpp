// Part of each GoogleTest program. LeakSanitizer calls __lsan_is_turned_off() at exit. A child of fork() has
// the memory of its parent's threads, but not their stacks and registers as roots. LeakSanitizer would report
// that memory, so it does not look for leaks in such a child.
#if __has_include(<sanitizer/lsan_interface.h>)
#include <sanitizer/lsan_interface.h>

#include <unistd.h>

namespace {

const pid_t test_program = ::getpid();

}  // namespace

int __lsan_is_turned_off() {
    return ::getpid() != test_program ? 1 : 0;
}
#endif
