// What the shared library exports; all else is hidden in it. Of no effect on the static one.
#pragma once

#if defined(__GNUC__)
#define REDLOCK_EXPORT [[gnu::visibility("default")]]
#else
#define REDLOCK_EXPORT
#endif
