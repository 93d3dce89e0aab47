// Finds out whether a process group has a process that has not ended.
//
// A process that has ended stays in its group as a zombie until its parent waits for it. A parent that lives
// outside of the group, such as a daemon, may never do that.
#pragma once

#include <sys/types.h>

namespace redlock::tool {

class GroupMembers {
public:
    /// Returns false if the group has no process, or if all its processes are zombies. Returns true if /proc
    /// does not show whether they are.
    bool any_alive(pid_t group);

private:
    pid_t last_found_ = 0;  // as long as this process lives, /proc need not be searched
};

}  // namespace redlock::tool
