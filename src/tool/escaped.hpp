// Text that others have supplied, made safe for a terminal: a server's words, a resource, a holder's
// description.
#pragma once

#include <string>
#include <string_view>

namespace redlock::tool {

/// Returns `text` with each byte as \xNN that belongs to a control character (also DEL and those above 0x7F),
/// a line break, a sign that changes the direction of writing, or no valid UTF-8. Other text stays as it is,
/// so escaping it again changes nothing. Everything that the command prints for people passes through here;
/// JSON has escapes of its own.
std::string escaped(std::string_view text);

}  // namespace redlock::tool
