#include "process_state.hpp"

#include <malloc.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

// A sanitizer replaces the allocator, and counts in place of it.
// NOLINTNEXTLINE(bugprone-reserved-identifier): it is theirs
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace redlock::exclusion {

namespace {

std::size_t entries_of(const std::filesystem::path& directory) {
    const std::filesystem::directory_iterator begin{directory};
    return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator{}));
}

}  // namespace

std::size_t descriptors() {
    return entries_of("/proc/self/fd") - 1;  // without the one that reads the directory
}

std::size_t tasks() {
    return entries_of("/proc/self/task");
}

std::size_t heap() {
    if (__sanitizer_get_current_allocated_bytes) return __sanitizer_get_current_allocated_bytes();
    const auto info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

/// Lines of proc_net_tcp(5): "0: 0100007F:9C40 0100007F:18EB 01 ...", where 01 is ESTABLISHED.
std::size_t connections_to(std::uint16_t port) {
    std::ifstream file{"/proc/net/tcp"};
    std::size_t result = 0;
    for (std::string line; std::getline(file, line);) {
        std::istringstream fields{line};
        std::string number;
        std::string local;
        std::string remote;
        std::string state;
        fields >> number >> local >> remote >> state;
        const auto colon = remote.find(':');
        if (state != "01" || colon == std::string::npos) continue;
        result += std::stoul(remote.substr(colon + 1), nullptr, 16) == port ? 1U : 0U;
    }
    return result;
}

std::size_t calls(const support::RedisServer& server, const std::string& command) {
    const auto stats = server.command({"INFO", "commandstats"});
    const auto words = "cmdstat_" + command + ":calls=";
    const auto at = stats.find(words);
    return at == std::string::npos ? 0 : std::stoul(stats.substr(at + words.size()));
}

}  // namespace redlock::exclusion
