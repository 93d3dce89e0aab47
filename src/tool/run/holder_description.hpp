// The holder description that the command-line tool writes beside a lock (LockOptions::holder). It tells a
// person who wonders about the lock which process holds it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace redlock::tool {

/// Returns for example "host=web1 pid=4711 program=backup".
std::string holder_description(pid_t process, std::string_view program);

/// Returns the same for another process, with the name that the kernel has for it, or "?" if the name is not
/// available.
std::string holder_description(pid_t process);

}  // namespace redlock::tool
