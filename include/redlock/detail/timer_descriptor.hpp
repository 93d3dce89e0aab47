// A timer that an event loop waits for as it waits for a socket. No function allocates memory.
#pragma once

#include <redlock/export.hpp>

#include <chrono>

namespace redlock::detail {

/// Returns a new descriptor, which belongs to the caller. Throws std::system_error if the process has no
/// descriptor left.
REDLOCK_EXPORT int new_timer_descriptor();

/// Makes the descriptor readable after this delay, and not readable until then.
REDLOCK_EXPORT void set_timer(int descriptor, std::chrono::nanoseconds delay) noexcept;

}  // namespace redlock::detail
