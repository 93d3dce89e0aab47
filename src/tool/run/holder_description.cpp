#include "holder_description.hpp"

#include <unistd.h>

#include <array>
#include <fstream>

namespace redlock::tool {

std::string holder_description(pid_t process, std::string_view program) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = '?';
    constexpr std::size_t longest = 500;
    return std::string{"host="} + host.data() + " pid=" + std::to_string(process) +
           " program=" + std::string{program.substr(0, longest)};
}

std::string holder_description(pid_t process) {
    std::ifstream file{"/proc/" + std::to_string(process) + "/comm"};
    std::string name;
    if (!std::getline(file, name)) name = "?";
    return holder_description(process, name);
}

}  // namespace redlock::tool
