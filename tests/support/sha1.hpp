// SHA-1, by which servers name scripts. The tests have their own, so that they do not need OpenSSL.
#pragma once

#include <string>
#include <string_view>

namespace redlock::support {

/// Returns the digest in 40 hexadecimal digits.
std::string sha1_of(std::string_view text);

}  // namespace redlock::support
