// What the shared library exports; all else is hidden in it. Of no effect on the static one.
#pragma once

#if __cplusplus < 202002L
#error "redlock needs C++20: compile with -std=c++20 or later"
// #error alone lets the compiler go on: pages of errors would follow.
#include <redlock/stop_at_the_error_above>
#endif

#if defined(__GNUC__)
#define REDLOCK_EXPORT [[gnu::visibility("default")]]
#else
#define REDLOCK_EXPORT
#endif
