// What /proc says about a process.
#pragma once

namespace redlock::tool {

/// Returns false if /proc is missing, or belongs to another namespace of processes.
bool proc_shows_our_processes();

/// Returns true if a process has ended. `file` is its /proc/PID/stat. It may be relative to `directory`, as
/// for openat(). The file is gone with the process (ENOENT), or does not belong to a process any more
/// (ESRCH). Any other error says nothing about the process. A process is shown as a zombie (Z) when its first
/// thread has ended, even if other threads of it run.
bool has_ended(int directory, const char* file);

}  // namespace redlock::tool
