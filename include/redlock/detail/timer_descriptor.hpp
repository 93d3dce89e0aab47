// A timer that an event loop waits for as it waits for a socket. No function allocates memory.
#pragma once

#include <redlock/export.hpp>

#include <chrono>

namespace redlock::detail {

/// Returns a new descriptor, which belongs to the caller. Throws std::system_error if the process has no
/// descriptor left.
REDLOCK_EXPORT int new_timer_descriptor();

/// Makes the descriptor readable after this delay, and not readable until then. `due` is the time of a steady
/// clock at which the descriptor becomes readable, or nanoseconds::max() if it was not set since. If that is
/// earlier, the function does nothing: setting the timer costs a system call.
REDLOCK_EXPORT void set_timer(int descriptor, std::chrono::nanoseconds delay,
                              std::chrono::nanoseconds& due) noexcept;

}  // namespace redlock::detail
