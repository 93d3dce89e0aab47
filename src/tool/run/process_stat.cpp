#include "process_stat.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>

namespace redlock::tool {

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

}  // namespace redlock::tool
