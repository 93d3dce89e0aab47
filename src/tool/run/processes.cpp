#include "processes.hpp"

#include <fcntl.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

namespace redlock::tool {
namespace {

/// getpgid() works even if the file cannot be read.
bool is_alive(pid_t process, pid_t group) {
    const auto file = "/proc/" + std::to_string(process) + "/stat";
    return process > 0 && ::getpgid(process) == group && !has_ended(AT_FDCWD, file.c_str());
}

}  // namespace

bool proc_shows_our_processes() {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/self", error) == std::to_string(::getpid());
}

bool has_ended(int directory, const char* file) {
    std::string stat(1024, '\0');  // such as "17 (name) Z 1 17 ..."
    const int descriptor = ::openat(directory, file, O_RDONLY | O_CLOEXEC);
    const auto size = descriptor < 0 ? -1 : ::read(descriptor, stat.data(), stat.size());
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    if (size < 0) return error == ENOENT || error == ESRCH;
    std::istringstream fields{stat.substr(stat.rfind(')') + 1)};
    char state = 0;
    fields >> state;
    std::string skipped;
    for (int i = 0; i < 16; ++i) fields >> skipped;
    long threads = 0;
    fields >> threads;
    return state == 'X' || (state == 'Z' && threads <= 1);
}

pid_t find_alive(pid_t group, pid_t first) {
    if (!group_exists(group)) return 0;
    if (is_alive(first, group)) return first;
    if (!proc_shows_our_processes()) return group;
    if (::access("/proc/1", F_OK) != 0) return group;  // the processes of other users are hidden
    bool has_zombie = false;
    std::error_code error;
    std::filesystem::directory_iterator it{"/proc", error};
    for (; !error && it != end(it); it.increment(error)) {
        const auto name = it->path().filename();
        const auto process = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));  // 0 for "cmdline"
        if (is_alive(process, group)) return process;
        has_zombie = has_zombie || (process > 0 && ::getpgid(process) == group);
    }
    return error || !has_zombie ? group : 0;
}

}  // namespace redlock::tool
