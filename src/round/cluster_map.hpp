// What the servers of a Redis Cluster say about its hash slots: the reply to CLUSTER NODES, which names the
// masters with their hash slots, and the errors MOVED and ASK, which name the server of one hash slot.
#pragma once

#include "../wire/reply.hpp"
#include "hash_slot.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::detail {

/// Where a server of a Cluster is. The host is empty if the server that was asked does not know it; it is
/// then the host of that server.
struct ServerAddress {
    std::string_view host{};
    std::uint16_t port = 0;

    bool operator==(const ServerAddress&) const = default;
};

/// An error reply that names another server for a hash slot: MOVED if the hash slot belongs to that server,
/// or ASK if the hash slot is being moved there, and the key is no longer at the server that was asked.
struct Redirection {
    bool asking = false;  ///< true for ASK: the command must be sent behind ASKING
    std::uint16_t hash_slot = 0;
    ServerAddress to{};
};

/// A master with its hash slots, as CLUSTER NODES shows it.
struct ClusterMaster {
    ServerAddress address{};
    std::string_view host_name{};  ///< empty if it announces none
    /// The first and the last hash slot of each range.
    std::vector<std::pair<std::uint16_t, std::uint16_t>> hash_slots{};
    bool moves_hash_slots = false;  ///< some of its hash slots are being moved from it or to it
};

/// Parses "host:port". The host may be an IPv6 address without brackets, a name, empty, or '?', which means
/// the same as empty.
inline std::optional<ServerAddress> parse_server_address(std::string_view text) noexcept {
    const auto colon = text.rfind(':');
    if (colon == text.npos) return std::nullopt;
    const auto port = whole_number<std::uint16_t>(text.substr(colon + 1));
    if (!port || *port == 0) return std::nullopt;
    auto host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    constexpr std::size_t longest_name = 255;
    const auto possible = [](char c) {
        return static_cast<unsigned char>(c) > 0x20 && c != 0x7F && c != '[' && c != ']';
    };
    if (host.size() > longest_name || !std::ranges::all_of(host, possible)) return std::nullopt;
    return ServerAddress{host == "?" ? std::string_view{} : host, *port};
}

/// Parses an error reply such as "MOVED 3999 127.0.0.1:6381". The result refers to the text. Returns nothing
/// if it is another error.
inline std::optional<Redirection> parse_redirection(std::string_view error) noexcept {
    const auto kind = cut_word(error);
    if (kind != "MOVED" && kind != "ASK") return std::nullopt;
    const auto hash_slot = whole_number<std::uint16_t>(cut_word(error), hash_slot_count - 1);
    const auto to = parse_server_address(cut_word(error));
    if (!hash_slot || !to || !error.empty()) return std::nullopt;
    return Redirection{kind == "ASK", *hash_slot, *to};
}

/// Parses the hash slots at the end of a line of CLUSTER NODES: "0-5460", "7000", or "[93->-id]" for a hash
/// slot that is being moved. Ignores what it does not understand.
inline void parse_hash_slots(std::string_view words, ClusterMaster& master) {
    while (!words.empty()) {
        auto word = cut_word(words);
        master.moves_hash_slots = master.moves_hash_slots || word.starts_with('[');
        const bool is_range = word.find('-') != word.npos;
        const auto first = whole_number<std::uint16_t>(cut_word(word, '-'), hash_slot_count - 1);
        const auto last = !is_range ? first : whole_number<std::uint16_t>(word, hash_slot_count - 1);
        if (first && last && *first <= *last) master.hash_slots.emplace_back(*first, *last);
    }
}

/// Parses one line of CLUSTER NODES. Returns nothing if it is no master whose address is known.
inline std::optional<ClusterMaster> parse_cluster_node(std::string_view line) {
    (void)cut_word(line);  // the id
    auto place = cut_word(line);
    const auto flags = cut_word(line);
    for (int i = 0; i < 5; ++i) (void)cut_word(line);  // its master, ping, pong, epoch, and the link
    const auto has = [&](std::string_view flag) { return flags.find(flag) != flags.npos; };
    if (!has("master") || has("noaddr") || has("handshake")) return std::nullopt;
    auto names = place;
    const auto address = parse_server_address(cut_word(names, ',').substr(0, place.find('@')));
    if (!address) return std::nullopt;
    ClusterMaster master{.address = *address};
    if (const auto name = cut_word(names, ','); name.find('=') == name.npos) master.host_name = name;
    parse_hash_slots(line, master);
    return master;
}

/// Parses the reply to CLUSTER NODES. The result refers to the text. It is empty if the text names no master
/// that serves a hash slot.
inline std::vector<ClusterMaster> parse_cluster_nodes(std::string_view text) {
    std::vector<ClusterMaster> masters;
    while (!text.empty()) {
        if (auto master = parse_cluster_node(cut_word(text, '\n')); master && !master->hash_slots.empty())
            masters.push_back(std::move(*master));
    }
    return masters;
}

}  // namespace redlock::detail
