#include "group_members.hpp"

#include "group_signals.hpp"
#include "process_stat.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace redlock::tool {
namespace {

/// Returns false if /proc belongs to another namespace of processes, or hides the processes of other users.
bool proc_shows_all_processes() {
    return proc_shows_our_processes() && ::access("/proc/1", F_OK) == 0;
}

enum class Kind : std::uint8_t { foreign, zombie, alive };

/// Returns whether the process belongs to the group, and is alive. getpgid() works even if the file cannot be
/// read.
Kind kind_of(pid_t process, pid_t group) {
    if (::getpgid(process) != group) return Kind::foreign;
    std::ifstream file{"/proc/" + std::to_string(process) + "/stat"};
    const std::string stat{std::istreambuf_iterator<char>{file}, {}};
    if (stat.empty()) return ::getpgid(process) == group ? Kind::alive : Kind::foreign;
    return has_ended(stat) ? Kind::zombie : Kind::alive;
}

}  // namespace

bool GroupMembers::any_alive(pid_t group) {
    if (!group_exists(group)) return false;
    if (last_found_ > 0 && kind_of(last_found_, group) == Kind::alive) return true;
    if (!proc_shows_all_processes()) return true;
    bool has_zombie = false;
    std::error_code error;
    std::filesystem::directory_iterator it{"/proc", error};
    for (; !error && it != end(it); it.increment(error)) {
        const auto name = it->path().filename();
        const auto process = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));  // 0 for "cmdline"
        const auto kind = process > 0 ? kind_of(process, group) : Kind::foreign;
        if (kind == Kind::alive) last_found_ = process;
        if (kind == Kind::alive) return true;
        has_zombie = has_zombie || kind == Kind::zombie;
    }
    return error || !has_zombie;
}

}  // namespace redlock::tool
