// Owners: drawn from a random number generator, written in hex, and parsed from hex.
#include <redlock/entropy.hpp>

#include <algorithm>

namespace redlock {

std::error_code Owner::draw(Entropy& entropy) noexcept {
    *this = {};
    std::array<std::byte, 20> bytes;
    if (auto error = entropy.fill(bytes)) return error;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto byte = std::to_integer<unsigned>(bytes[i]);
        hex_[2 * i] = digits[byte >> 4U];
        hex_[2 * i + 1] = digits[byte & 0xFU];
    }
    length_ = hex_.size();
    return {};
}

std::optional<Owner> Owner::parse(std::string_view hex) noexcept {
    Owner owner;
    const bool proper = hex.size() == owner.hex_.size() && hex.find_first_not_of(digits) == hex.npos;
    if (!proper) return std::nullopt;
    std::ranges::copy(hex, owner.hex_.begin());
    owner.length_ = hex.size();
    return owner;
}

}  // namespace redlock
