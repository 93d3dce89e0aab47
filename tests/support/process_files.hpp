// What files say, above all those of /proc.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace redlock::support {

/// As much of it as can be read: the process of a file in /proc may just be ending.
inline std::string content(const std::filesystem::path& path) {
    std::ifstream file{path};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Returns the state letter of a thread, or of the main thread of a process: R running, S sleeping, T
/// stopped, Z zombie, and so on. Returns ? if there is none.
inline char state_of(const std::string& thread) {
    const auto status = content("/proc/" + thread + "/status");
    const auto state = status.find("\nState:\t");
    return state == status.npos ? '?' : status[state + 8];
}

}  // namespace redlock::support
