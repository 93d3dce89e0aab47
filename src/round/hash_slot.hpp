// The hash slots of a Redis Cluster (docs/glossary.md). All keys of a command or a script must be in one.
#pragma once

#include "../wire/key_names.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace redlock::detail {

inline constexpr std::size_t hash_slot_count = 16'384;

/// Returns the part of the key that determines its hash slot: the hash tag, or the whole key if it has none.
constexpr std::string_view hashed_part(std::string_view key) noexcept {
    if (!has_hash_tag(key)) return key;
    const auto open = key.find('{') + 1;
    return key.substr(open, key.find('}', open) - open);
}

/// Returns the hash slot of a key: the CRC-16 (XMODEM) of its hashed part, modulo 16384.
constexpr std::uint16_t hash_slot_of(std::string_view key) noexcept {
    unsigned crc = 0;
    for (const char c : hashed_part(key)) {
        crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8U;
        for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U;
    }
    return static_cast<std::uint16_t>((crc & 0xFFFFU) % hash_slot_count);
}

/// Returns true if the keys beside the resource, such as the one of its readers, are in the hash slot of the
/// resource. This is not so for names like "a}b" and "{}x", because their braces end the hash tag of the key
/// beside too early.
inline bool keeps_keys_together(std::string_view resource) {
    return hashed_part(key_of(KeyKind::readers, resource).text()) == hashed_part(resource);
}

/// Returns the reason why the resources cannot be one lock on a Redis Cluster, or nothing.
inline std::optional<std::string> problem_in_cluster(std::span<const std::string> resources) {
    const auto quoted = [](const std::string& name) { return "\"" + name + "\""; };
    for (const auto& it : resources) {
        if (!keeps_keys_together(it))
            return "the resource " + quoted(it) +
                   " has braces that would separate it from the keys beside it; on a Redis Cluster, a name "
                   "must have no '}', or have a text in its first pair of braces";
        if (hash_slot_of(it) != hash_slot_of(resources.front()))
            return "the resources " + quoted(resources.front()) + " and " + quoted(it) +
                   " are in different slots of a Redis Cluster; give them a common hash tag, such as "
                   "{orders}:1 and {orders}:2";
    }
    return std::nullopt;
}

}  // namespace redlock::detail
