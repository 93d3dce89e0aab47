// The checks of options, and the texts of their errors.
#pragma once

#include <redlock/export.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>

#include <chrono>
#include <concepts>
#include <span>
#include <string>
#include <string_view>

namespace redlock::detail {

/// The largest ttl and quarantine: 100 years.
inline constexpr std::chrono::milliseconds longest_ttl = std::chrono::hours{24 * 36'525};

/// Throws std::invalid_argument with a text such as "redlock: LockOptions::ttl is 0 ms; it must be positive".
[[noreturn]] REDLOCK_EXPORT void throw_invalid_argument(const std::string& field, const std::string& has,
                                                        const std::string& must);

/// Return the time as text, such as "50 ms".
REDLOCK_EXPORT std::string to_string(std::chrono::milliseconds span);
REDLOCK_EXPORT std::string to_string(std::chrono::nanoseconds span);

/// Returns a text unchanged, and a number or a time as text.
template <class Value>
std::string to_text(const Value& value) {
    using detail::to_string;
    using std::to_string;
    if constexpr (std::convertible_to<const Value&, std::string>)
        return value;
    else
        return to_string(value);
}

/// Throws as throw_invalid_argument() does if `possible` is false. Only then joins the parts of `must`.
template <class Has, class... Must>
void require(bool possible, std::string_view field, const Has& has, const Must&... must) {
    if (!possible) throw_invalid_argument(std::string{field}, to_text(has), (... + to_text(must)));
}

/// Throws std::invalid_argument, with the name of the field, if the ttl cannot work. A ttl must exceed the
/// drift plus node_timeout, because otherwise one node that does not answer could use up the whole validity.
/// It must not exceed a quarantine that is not 0, because otherwise a node that has lost the key could vote
/// again while the lock is valid.
REDLOCK_EXPORT void check_ttl(const std::string& field, std::chrono::milliseconds ttl, double drift_factor,
                              std::chrono::milliseconds node_timeout, std::chrono::milliseconds quarantine);

/// Does nothing unless a node is a Redis Cluster. Then throws std::invalid_argument if the options or the
/// resources are not possible there. `type` is the name of the struct in the message.
REDLOCK_EXPORT void check_for_cluster(const Nodes& nodes, std::span<const std::string> resources,
                                      const LockOptions& options, const std::string& type = "LockOptions");

/// Throws std::invalid_argument if a lock cannot have these options, nodes and resources.
void check_lock(const LockOptions& options, const Nodes& nodes, std::span<const std::string> resources,
                const std::string& type = "LockOptions");

}  // namespace redlock::detail
