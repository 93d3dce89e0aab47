// Makes text from others safe for a terminal: replies of servers, names of resources, descriptions of
// holders.
#pragma once

#include <string>
#include <string_view>

namespace redlock::tool {

/// Returns `text` with the bytes of unsafe characters written as \xNN. Unsafe are control characters (also
/// DEL and those above 0x7F), line breaks, characters that change the direction of writing, and bytes that
/// are not valid UTF-8. Other text stays unchanged, so escaping it again changes nothing. Everything that
/// redlock prints for people passes through here. JSON has escapes of its own.
std::string escaped(std::string_view text);

}  // namespace redlock::tool
