// Numbers that identify the running process and thread, so that a forked child does not use the state of its
// parent, and a thread not the state of another one.
#pragma once

#include <redlock/export.hpp>

#include <atomic>
#include <cstdint>

namespace redlock {

/// Returns a number that differs between a process and all its ancestors. If an object has stored another
/// number, it belongs to the process from which this one was forked. The process id would not do, because a
/// child in a new pid namespace can have the same as its parent. Makes no system call, except the first time.
REDLOCK_EXPORT std::int64_t this_process() noexcept;

/// Returns a number that no other thread of this process has, had or will have. The thread id would not do,
/// because the system reuses it. Never returns 0.
REDLOCK_EXPORT std::uint64_t this_thread() noexcept;

namespace detail {

/// Returns the object of this process. If `current` is null or belongs to the parent of fork(), `make` makes
/// a new one from it, and `current` is replaced. If another thread of the child is faster, returns its
/// object.
template <class T, class Make>
T& of_this_process(std::atomic<T*>& current, Make make) {
    auto* known = current.load();
    while (!known || known->process != this_process()) {
        auto fresh = make(known);
        if (current.compare_exchange_strong(known, fresh.get())) return *fresh.release();
    }
    return *known;
}

}  // namespace detail

}  // namespace redlock
