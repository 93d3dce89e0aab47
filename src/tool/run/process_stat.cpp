#include "process_stat.hpp"

#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <system_error>

namespace redlock::tool {

bool proc_shows_our_processes() {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/self", error) == std::to_string(::getpid());
}

bool has_ended(const std::string& stat) {
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
