// Which process this is, so that a forked child does not take its parent's locks for its own (rule D10).
#pragma once

#include <cstdint>

namespace redlock {

/// The process id: differs between a parent and its child after fork().
std::int64_t this_process() noexcept;

}  // namespace redlock
