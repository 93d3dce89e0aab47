// Parses an address that was taken out of a list. A list may have been split inside of a password, for
// example at a comma. So the whole list decides whether an error message may quote a part of the address.
#pragma once

#include <redlock/endpoint.hpp>

#include <string>
#include <string_view>

namespace redlock {

/// Returns true if the text has an '@' or "password=".
bool may_have_password(std::string_view text);

/// Does the same as Endpoint::parse(). If `may_quote` is true, an error message may quote a scheme or the
/// name of a field. If the address itself may have a password, nothing is quoted either.
Endpoint parse_address(std::string_view uri, bool may_quote);

/// Throws std::invalid_argument with the name of the node, because it cannot be used as its endpoint demands.
[[noreturn]] void throw_unusable(const Endpoint& endpoint, const std::string& problem);

}  // namespace redlock
