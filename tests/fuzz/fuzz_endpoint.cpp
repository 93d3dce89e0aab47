// Any text as the address of a node. Each '$' stands for a password.
//
// D11: if an address contains '@' and is rejected, the message is the same for every password, so that it
// cannot contain any part of one. An accepted address means what its fields say: they can be written as an
// address again.
#include "require.hpp"

#include <redlock/endpoint.hpp>
#include <redlock/redis_nodes.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::fuzz {
namespace {

/// Equivalent to the secret for a parser: letters, hex digits and numbers are in the same places.
constexpr std::string_view another_secret = "gwmkaz9";

struct Outcome {
    std::optional<Endpoint> endpoint{};
    std::string refusal{};
};

std::string with_password(std::string_view text, std::string_view password) {
    std::string result;
    for (const char c : text)
        if (c == '$')
            result += password;
        else
            result += c;
    return result;
}

Outcome parsed(std::string_view uri) {
    try {
        return {.endpoint = Endpoint::parse(uri)};
    } catch (const std::invalid_argument& refused) {
        return {.refusal = refused.what()};
    }
}

std::string encoded(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string result;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        result += {'%', digits[byte >> 4U], digits[byte & 0xFU]};
    }
    return result;
}

std::string user_of(const Endpoint& endpoint) {
    if (endpoint.username.empty() && endpoint.password.empty()) return {};
    return encoded(endpoint.username) + ":" + encoded(endpoint.password) + "@";
}

/// The name of one host in a URI, where the sign before the zone of an IPv6 address is encoded.
std::string host_of(const Endpoint& endpoint) {
    auto host = endpoint.name();
    if (const auto zone = host.find('%'); zone != host.npos) host.insert(zone + 1, "25");
    return host;
}

std::string hosts_of(const Endpoint& endpoint) {
    std::string hosts;
    for (const auto& seed : endpoint.seeds) hosts += (hosts.empty() ? "" : ",") + host_of(seed);
    if (!hosts.empty()) return hosts;
    if (endpoint.sentinels.empty()) return host_of(endpoint);
    for (const auto& sentinel : endpoint.sentinels) hosts += (hosts.empty() ? "" : ",") + host_of(sentinel);
    return hosts + "/" + encoded(endpoint.master);
}

std::string written(const Endpoint& endpoint) {
    const auto database = std::to_string(endpoint.database);
    if (!endpoint.unix_socket.empty())
        return "unix://" + user_of(endpoint) + "/" + encoded(endpoint.unix_socket.substr(1)) +
               "?db=" + database;
    const auto& tls = endpoint.tls;
    const auto& sentinels = endpoint.sentinels;
    auto uri = std::string{tls.enabled ? "rediss" : "redis"} +
               (!endpoint.seeds.empty() ? "+cluster://"
                : sentinels.empty()     ? "://"
                                        : "+sentinel://") +
               user_of(endpoint) + hosts_of(endpoint) + "/" + database + "?";
    if (tls.enabled)
        uri += "ca_file=" + encoded(tls.ca_file) + "&certificate=" + encoded(tls.certificate) +
               "&key=" + encoded(tls.key) + "&server_name=" + encoded(tls.server_name) + "&";
    if (sentinels.empty()) return uri;
    if (tls.enabled) uri += std::string{"sentinel_tls="} + (sentinels[0].tls.enabled ? "yes&" : "no&");
    return uri + "sentinel_user=" + encoded(sentinels[0].username) +
           "&sentinel_password=" + encoded(sentinels[0].password);
}

void check_same(const Endpoint& a, const Endpoint& b) {
    require(a.host == b.host && a.port == b.port && a.unix_socket == b.unix_socket, "the same place");
    require(a.username == b.username && a.password == b.password, "the same user");
    require(a.database == b.database, "the same database");
    require(a.tls.enabled == b.tls.enabled && a.tls.ca_file == b.tls.ca_file &&
                a.tls.certificate == b.tls.certificate && a.tls.key == b.tls.key &&
                a.tls.server_name == b.tls.server_name,
            "the same TLS");
    require(a.master == b.master && a.sentinels.size() == b.sentinels.size(), "the same Sentinels");
    for (std::size_t i = 0; i < a.sentinels.size(); ++i) check_same(a.sentinels[i], b.sentinels[i]);
    require(a.seeds.size() == b.seeds.size(), "the same seeds");
    for (std::size_t i = 0; i < a.seeds.size(); ++i) check_same(a.seeds[i], b.seeds[i]);
}

void check_sound(const Endpoint& endpoint) {
    for (const auto& sentinel : endpoint.sentinels) check_sound(sentinel);
    if (!endpoint.sentinels.empty())
        return require(endpoint.host.empty() && endpoint.unix_socket.empty() && !endpoint.master.empty(),
                       "a master that Sentinels name");
    for (const auto& seed : endpoint.seeds) check_sound(seed);
    if (!endpoint.seeds.empty())
        return require(endpoint.host.empty() && endpoint.unix_socket.empty() && endpoint.database == 0,
                       "a Redis Cluster");
    const bool local = !endpoint.unix_socket.empty();
    require(local != !endpoint.host.empty(), "a host or a socket");
    require(!local || (endpoint.unix_socket.front() == '/' && endpoint.unix_socket.size() <= 107),
            "a path that fits");
    require(endpoint.port >= 1, "a port");
    require(endpoint.database >= 0 && endpoint.database <= 1'000'000, "a database");
    require(!(local && endpoint.tls.enabled), "no TLS with a socket");
}

/// name() is the location and nothing else. Without user, database and TLS it is the same location.
void check_named(const Endpoint& endpoint) {
    const auto name = endpoint.name();
    if (!endpoint.unix_socket.empty()) return require(name == endpoint.unix_socket, "named by its socket");
    if (!endpoint.sentinels.empty())
        return require(name == endpoint.master + "@" + endpoint.sentinels[0].name(), "named by its master");
    if (!endpoint.seeds.empty())
        return require(name == "cluster@" + endpoint.seeds[0].name(), "named by its first seed");
    const auto place = Endpoint::parse(name);
    check_same(place, {.host = endpoint.host, .port = endpoint.port});
    require(place.name() == name, "one name for one place");
}

void check_usable(const Endpoint& endpoint) {
    if (endpoint.tls.enabled) return;  // its files would be read
    try {
        const RedisNodes nodes{std::vector{endpoint}};
        require(nodes.name(0) == endpoint.name(), "named as its endpoint");
    } catch (const std::invalid_argument&) {
        require(endpoint.sentinels.size() > 1 || endpoint.seeds.size() > 1,
                "refused for two equal Sentinels or seeds, or for too many");
    }
}

void try_address(std::string_view text) {
    const auto uri = with_password(text, secret);
    const auto outcome = parsed(uri);
    const auto other = parsed(with_password(text, another_secret));
    require(outcome.endpoint.has_value() == other.endpoint.has_value(), "taken whatever the password");
    if (!outcome.endpoint) {
        require(outcome.refusal.starts_with("redlock: node address: "), "says what it is about");
        if (uri.find('@') != uri.npos) require(outcome.refusal == other.refusal, "no trace of the password");
        return;
    }
    const auto& endpoint = *outcome.endpoint;
    check_sound(endpoint);
    check_named(endpoint);
    check_same(Endpoint::parse(written(endpoint)), endpoint);
    check_usable(endpoint);
    if (hosts_of(endpoint).find(secret) == std::string::npos &&
        endpoint.master.find(secret) == std::string::npos &&
        endpoint.unix_socket.find(secret) == std::string::npos)
        require_no_secret(endpoint.name());
}

}  // namespace
}  // namespace redlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    redlock::fuzz::try_address({reinterpret_cast<const char*>(data), size});
    return 0;
}
