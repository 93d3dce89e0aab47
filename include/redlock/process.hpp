// Which process and which thread this is, so that what belongs to one is not taken for another's own.
#pragma once

#include <redlock/export.hpp>

#include <cstdint>

namespace redlock {

/// A number that this process has and no ancestor of it had: of two that differ, one was forked from the
/// other (rule D10). Not the process id, which a child in a pid namespace of its own may share with its
/// parent. Costs no system call.
REDLOCK_EXPORT std::int64_t this_process() noexcept;

/// A number that this thread has and no other thread of this process ever had or will have: not the thread's
/// id, which goes to a later thread. Never 0.
REDLOCK_EXPORT std::uint64_t this_thread() noexcept;

}  // namespace redlock
