#include "machine.hpp"

#include <hiredis/hiredis.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <string_view>

namespace redlock::bench {
namespace {

std::string cpu() {
    std::ifstream file{"/proc/cpuinfo"};
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown CPU";
}

std::string kernel() {
    utsname names{};
    ::uname(&names);
    return std::string{names.sysname} + " " + names.release;
}

std::string compiler() {
#if defined(__clang__)
    return "Clang " __clang_version__;
#else
    return "GCC " __VERSION__;
#endif
}

std::string hiredis() {
    return "hiredis " + std::to_string(HIREDIS_MAJOR) + "." + std::to_string(HIREDIS_MINOR) + "." +
           std::to_string(HIREDIS_PATCH);
}

std::string redis() {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe{::popen("redis-server --version", "r"),
                                                               ::pclose};
    std::array<char, 200> bytes{};
    if (!pipe || std::fgets(bytes.data(), bytes.size(), pipe.get()) == nullptr) return "no redis-server";
    const std::string_view line{bytes.data()};
    return std::string{line.substr(0, line.find(" sha"))};
}

}  // namespace

std::string machine() {
    return cpu() + ", " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) + " CPUs, " + kernel() + ", " +
           compiler() + ", " + hiredis() + ", " + redis();
}

std::string today() {
    const auto now = std::time(nullptr);
    std::tm date{};
    ::gmtime_r(&now, &date);
    std::array<char, 16> text{};
    const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%d", &date);
    return {text.data(), length};
}

}  // namespace redlock::bench
