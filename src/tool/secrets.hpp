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

}  // namespace redlock::tool
