// What the file /proc/PID/stat says about a process.
#pragma once

#include <string>

namespace redlock::tool {

/// Returns false if /proc is missing, or belongs to another namespace of processes.
bool proc_shows_our_processes();

/// Returns true for the text of a process that has ended, such as "17 (name) Z 1 17 ...". A process is shown
/// as a zombie (Z) when its first thread has ended, even if other threads of it run.
bool has_ended(const std::string& stat);

}  // namespace redlock::tool
