// Where and when a measurement was made.
#pragma once

#include <string>

namespace redlock::bench {

/// "AMD EPYC, 2 CPUs, Linux 6.1.0, GCC 12.2.0, hiredis 0.14.1, Redis server v=7.0.15"
std::string machine();

/// "2025-06-30"
std::string today();

}  // namespace redlock::bench
