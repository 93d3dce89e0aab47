// A getaddrinfo() that replaces the C library's in the whole program: it knows names that a test defines, and
// looks all others up as ever.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace redlock::test {

/// From now on the name has these numeric addresses, in this order; with none of them it is unknown.
void set_addresses(const std::string& name, const std::vector<std::string>& addresses);

/// How often it was looked up.
std::size_t lookups_of(const std::string& name);

/// While this lives, looking up the name blocks; then it has the address.
class HangingName {
public:
    HangingName(std::string name, std::string address);
    ~HangingName();
    HangingName(const HangingName&) = delete;
    HangingName& operator=(const HangingName&) = delete;

    void resolve();

private:
    std::string name_;
    std::string address_;
};

}  // namespace redlock::test
