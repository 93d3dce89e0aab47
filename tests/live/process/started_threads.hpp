// How many threads were ever started in this process: also those too short-lived to be seen in /proc.
#pragma once

#include <cstddef>

namespace redlock::test {

std::size_t started_threads() noexcept;

}  // namespace redlock::test
