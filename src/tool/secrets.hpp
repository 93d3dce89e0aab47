// Passwords stand in the addresses of nodes, and addresses may stand in arguments, which everybody sees in
// ps.
#pragma once

#include <string>
#include <string_view>

namespace redlock::tool {

/// `text` with what stands between "://" and the last '@' of each word replaced by stars.
std::string without_secrets(std::string_view text);

/// The same, done to the arguments of this process where ps finds them.
void erase_secrets(int argc, char** argv);

/// Erases the value of an environment variable of this process, also where /proc/PID/environ finds it. While
/// it runs no other thread may use the environment.
void erase_variable(const char* name);

}  // namespace redlock::tool
