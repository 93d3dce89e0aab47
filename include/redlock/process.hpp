// Which process and which thread this is, so that what belongs to one is not taken for another's own.
#pragma once

#include <cstdint>

namespace redlock {

/// A number that this process has and no ancestor of it had: of two that differ, one was forked from the
/// other (rule D10). Not the process id, which a child in a pid namespace of its own may share with its
/// parent. Costs no system call.
std::int64_t this_process() noexcept;

}  // namespace redlock
