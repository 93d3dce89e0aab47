// A getaddrinfo() of our own for the whole program, with names that are made up; all others are looked up as
// ever.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace redlock::exclusion {

/// From now on the name has these numeric addresses, in this order; with none of them it is unknown.
void let_name_be(const std::string& name, const std::vector<std::string>& addresses);

/// How often it was looked up.
std::size_t look_ups_of(const std::string& name);

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

}  // namespace redlock::exclusion
