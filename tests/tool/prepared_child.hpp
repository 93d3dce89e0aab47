// A program in a child process that does something before, or that may not do something.
#pragma once

#include "live/forked_child.hpp"
#include "tool_world.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace redlock::test {

/// Calls `prepare()` in a child, which then becomes the program. Returns the status and the output of the
/// program. If `prepare()` returns false, the status is 99.
template <class Prepare>
Outcome run_prepared(const ToolWorld& world, const std::vector<std::string>& words, Prepare prepare) {
    ForkedChild child{[&](auto) {
        ::dup2(::creat(world.file("out").c_str(), 0600), STDOUT_FILENO);
        ::dup2(::creat(world.file("err").c_str(), 0600), STDERR_FILENO);
        if (prepare()) execute(words, world.environment());
        ::_exit(99);
    }};
    const int status = child.wait();
    return {status, world.in("out"), world.in("err")};
}

}  // namespace redlock::test
