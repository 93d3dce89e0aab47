// What the command says of the holder of a lock, for those who wonder: LockOptions::holder.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace redlock::tool {

/// "host=web1 pid=4711 program=backup".
std::string holder_note(pid_t process, std::string_view program);

/// The same of another process, by the name that the kernel has for it: "?" where that is not to be had.
std::string holder_note(pid_t process);

}  // namespace redlock::tool
