// The names of the keys that belong to a resource, the name that is locked, and that of the marker.
#pragma once

#include "resp.hpp"
#include "verbs.hpp"

#include <string_view>

namespace redlock::detail {

/// The key of the *marker*, by which a node decides in a quarantine (NodesOptions::quarantine) whether it has
/// a vote. A node that has lost its data may have forgotten who holds what, so it has no vote until every
/// lease that it may have forgotten is over (src/wire/lua/quarantine.lua; docs/protocol.md has the reasons).
///
/// The value of the key is the identity of the data (the run id, a colon, and the replication id), a colon,
/// and the instant in microseconds since 1970 by the clock of the server, since which the node has had them.
inline constexpr std::string_view marker_key = "redlock:since";

/// Returns true if the name has a part in braces, the hash tag. Redis Cluster hashes only this part.
constexpr bool has_hash_tag(std::string_view resource) noexcept {
    const auto open = resource.find('{');
    const auto close = resource.find('}', open == resource.npos ? open : open + 1);
    return close != resource.npos && close > open + 1;
}

/// Returns the name of a key beside `resource`. It has the hash tag of the resource, so that both stay
/// together:
///
///     resource      | name for the suffix ":queue"
///     --------------+------------------------------------------------------------------
///     orders        | {orders}:queue
///     orders:{42}   | orders:{42}:queue
///     {x}           | {x}:tag-queue, because {x}:queue is the key beside the resource x
constexpr Word key_beside(std::string_view resource, std::string_view suffix) noexcept {
    if (!has_hash_tag(resource)) return {"{", resource, "}", suffix};
    const bool in_braces = resource.front() == '{' && resource.back() == '}' &&
                           !has_hash_tag(resource.substr(1, resource.size() - 2));
    return in_braces ? Word{resource, ":tag-", suffix.substr(1), ""} : Word{resource, suffix, "", ""};
}

/// Returns the key of this kind that belongs to `resource`. The marker is one key for all resources.
constexpr Word key_of(KeyKind kind, std::string_view resource) noexcept {
    switch (kind) {
        case KeyKind::queue: return key_beside(resource, ":queue");
        case KeyKind::description: return key_beside(resource, ":holder");
        case KeyKind::readers: return key_beside(resource, ":readers");
        case KeyKind::counter: return key_beside(resource, ":fence");
        case KeyKind::marker: return marker_key;
        case KeyKind::resource:
        case KeyKind::none: break;
    }
    return resource;
}

}  // namespace redlock::detail
