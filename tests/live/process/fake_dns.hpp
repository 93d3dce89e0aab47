// A getaddrinfo() that replaces that of the C library in the whole program. It resolves names that a test
// defines, and passes all other names to the C library.
#pragma once

#include <redlock/detail/not_copied.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace redlock::test {

/// From now on the name has these numeric addresses, in this order. Without an address it is unknown.
void set_addresses(const std::string& name, const std::vector<std::string>& addresses);

/// Returns how often the name was looked up.
std::size_t lookups_of(const std::string& name);

/// A name that no other object has. While the object exists, resolving the name blocks until resolve() is
/// called. Afterwards the name has the address. A look-up does not end at once when the object is destroyed,
/// so a name that was used again could get a look-up of an earlier test.
class HangingName : detail::NotCopied {
public:
    explicit HangingName(std::string address);
    ~HangingName();

    const std::string& name() const { return name_; }
    void resolve();
    /// From now on, resolving the name blocks again.
    void hang();

private:
    std::string name_;
    std::string address_;
};

}  // namespace redlock::test
