// Hides passwords. Addresses of nodes may contain passwords. Addresses may be given as arguments, which every
// user can read with ps.
#pragma once

#include <string>
#include <string_view>

namespace redlock::tool {

/// Returns `text` with stars instead of all secrets. These are the text between the first "://" and the last
/// '@', and the values of `sentinel_password=`, up to the next '&'. Blanks end no secret, because a password
/// may contain them.
std::string without_secrets(std::string_view text);

/// Does the same to the arguments of this process, in the memory that ps reads.
void erase_secrets(int argc, char** argv);

/// Removes an environment variable of this process, and erases its value in the memory that /proc/PID/environ
/// shows. No other thread may use the environment during the call.
void erase_variable(const char* name);

}  // namespace redlock::tool
