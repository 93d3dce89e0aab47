// The macro that makes a symbol visible in the shared library, where all others are hidden. It has no effect
// on the static library.
#pragma once

#if __cplusplus < 202002L
#error "redlock needs C++20: compile with -std=c++20 or later"
// The missing header stops the compiler. After an #error alone it would go on and print pages of errors.
#include <redlock/stop_at_the_error_above>
#endif

#if defined(__GNUC__)
#define REDLOCK_EXPORT [[gnu::visibility("default")]]
#else
#define REDLOCK_EXPORT
#endif
