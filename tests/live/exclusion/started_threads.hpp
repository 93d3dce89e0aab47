// How many threads were ever started in this process: also those too short-lived to be seen in /proc.
#pragma once

#include <cstddef>

namespace redlock::exclusion {

std::size_t started_threads() noexcept;

}  // namespace redlock::exclusion
