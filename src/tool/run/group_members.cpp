#include "group_members.hpp"

#include "process_stat.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace redlock::tool {
namespace {

/// Returns false if /proc belongs to another namespace of processes, or hides the processes of other users.
bool proc_shows_all_processes() {
    return proc_shows_our_processes() && ::access("/proc/1", F_OK) == 0;
}

/// getpgid() works even if the file cannot be read.
bool is_alive(pid_t process, pid_t group) {
    const auto file = "/proc/" + std::to_string(process) + "/stat";
    return process > 0 && ::getpgid(process) == group && !has_ended(AT_FDCWD, file.c_str());
}

}  // namespace

bool GroupMembers::any_alive(pid_t group) {
    if (!group_exists(group)) return false;
    if (is_alive(last_found_, group)) return true;
    if (!proc_shows_all_processes()) return true;
    bool has_zombie = false;
    std::error_code error;
    std::filesystem::directory_iterator it{"/proc", error};
    for (; !error && it != end(it); it.increment(error)) {
        const auto name = it->path().filename();
        const auto process = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));  // 0 for "cmdline"
        if (is_alive(process, group)) {
            last_found_ = process;
            return true;
        }
        has_zombie = has_zombie || (process > 0 && ::getpgid(process) == group);
    }
    return error || !has_zombie;
}

}  // namespace redlock::tool
