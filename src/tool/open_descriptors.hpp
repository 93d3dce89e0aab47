// The descriptors that a process has inherited. A process that stays behind must not keep those of its parent
// open: whoever waits for the end of a pipe, or for a lock of flock(), would wait for that process.
#pragma once

namespace redlock::tool {

/// Closes every descriptor from `first` up, except `kept`. Safe between fork() and exec(): it calls only what
/// is safe in a signal handler. If neither close_range() nor /proc is there, it closes those below 1024.
void close_descriptors(int first, int kept) noexcept;

}  // namespace redlock::tool
