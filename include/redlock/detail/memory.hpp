// What the library does when memory runs out.
#pragma once

#include <new>

namespace redlock::detail {

/// Calls `action`. Returns false if it has thrown std::bad_alloc. Callers that ignore the result leave the
/// rest to a later call, or do without it.
template <class Action>
bool has_memory_for(Action action) {
    try {
        action();
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

}  // namespace redlock::detail
