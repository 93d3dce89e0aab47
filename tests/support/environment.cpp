// Part of each GoogleTest program. Before main(), the program removes the environment of the person who runs
// it, as described in tests/environment.cmake.
#include <regex.h>

#include <unistd.h>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

bool is_kept(const std::string& name) {
    regex_t kept;
    if (::regcomp(&kept, REDLOCK_KEPT_VARIABLES, REG_EXTENDED | REG_NOSUB) != 0) std::abort();
    const bool matches = ::regexec(&kept, name.c_str(), 0, nullptr, 0) == 0;
    ::regfree(&kept);
    return matches;
}

bool give_up_environment() {
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string assignment = *entry;
        names.push_back(assignment.substr(0, assignment.find('=')));
    }
    for (const auto& name : names)
        if (!is_kept(name)) ::unsetenv(name.c_str());
    return ::setenv("HOME", REDLOCK_TEST_HOME, 1) == 0;
}

[[maybe_unused]] const bool given_up = give_up_environment();

}  // namespace
