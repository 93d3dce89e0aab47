// Parses the addresses of nodes. Every error names the part that is wrong, and shows no secret.
#include <redlock/endpoint.hpp>

#include "../wire/reply.hpp"
#include "parse_address.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace redlock {
namespace {

constexpr std::size_t longest_name = 255;        // the longest host name in DNS and TLS
constexpr std::size_t longest_file_path = 4095;  // PATH_MAX without the final NUL
constexpr std::uint16_t redis_port = 6379;
constexpr std::uint16_t sentinel_port = 26'379;
const std::string names_of_tls = "ca_file, certificate, key and server_name";

/// Parses one address.
class Parser {
public:
    Parser(std::string_view uri, bool may_quote) : uri_(uri), may_quote_(may_quote) {}

    Endpoint parse() {
        if (uri_.empty()) fail("address", "is empty");
        if (uri_.front() == '"' || uri_.front() == '\'') fail("address", "begins with a quotation mark");
        if (has_several_schemes()) fail_as_list();
        const auto plain = [](unsigned char c) { return c > 0x20 && c != 0x7F; };
        if (!std::ranges::all_of(uri_, plain)) fail("address", "has white space or a control character");
        if (uri_.find('#') != uri_.npos) fail("address", "has a fragment ('#'); write %23 inside a password");

        auto rest = uri_;
        const auto scheme = cut_before(rest, "://");
        if (!scheme) {
            if (rest.find_first_of("@/?") != rest.npos)
                fail("scheme", "is missing; write redis://, rediss:// or unix:// before all else");
            read_host_and_port(rest);
        } else if (*scheme == "unix") {
            read_unix(rest);
        } else {
            read_redis(*scheme, rest);
        }
        return std::move(endpoint_);
    }

private:
    [[noreturn]] void fail(std::string_view part, std::string_view problem,
                           std::string_view value = {}) const {
        auto text = "redlock: node address: " + std::string{part} + " ";
        // Only a scheme or the name of a field is ever quoted. In a mistyped address, a part of the password
        // may have been parsed as host, port or path. If the address may contain a password, nothing is
        // quoted at all.
        if (!value.empty() && may_quote_) text += "\"" + std::string{value} + "\" ";
        text += problem;
        if (may_cut_password()) text += "; inside a password write %2F for '/', and %3F for '?'";
        throw std::invalid_argument(text);
    }

    /// Returns true if an '@' follows the path or the query of a server. These may have begun inside a
    /// password.
    bool may_cut_password() const {
        auto authority = uri_;
        if (!cut_before(authority, "://")) return false;
        const auto end = authority.find_first_of("/?");
        return end != authority.npos && end > 0 && authority.find('@', end) != authority.npos;
    }

    [[noreturn]] void fail_as_list() const {
        fail("address", "is a list; give each address in a text of its own");
    }

    /// Returns true if another address follows a comma or a blank.
    bool has_several_schemes() const {
        constexpr std::string_view separators = ",; \t\r\n";
        const auto first = uri_.find_first_not_of(separators);
        for (const std::string_view scheme : {"redis://", "rediss://", "unix://", "redis+sentinel://",
                                              "rediss+sentinel://", "redis+cluster://", "rediss+cluster://"})
            for (auto at = uri_.find(scheme); at != uri_.npos; at = uri_.find(scheme, at + 1))
                if (at > first && separators.find(uri_[at - 1]) != separators.npos) return true;
        return false;
    }

    /// Returns the text before the first `separator` and removes both from `rest`. Returns nothing if there
    /// is no separator.
    static std::optional<std::string_view> cut_before(std::string_view& rest, std::string_view separator) {
        const auto at = rest.find(separator);
        if (at == rest.npos) return std::nullopt;
        const auto before = rest.substr(0, at);
        rest.remove_prefix(at + separator.size());
        return before;
    }

    void read_redis(std::string_view scheme, std::string_view rest) {
        endpoint_.tls.enabled = scheme.starts_with("rediss");
        const auto kind = scheme.substr(std::min<std::size_t>(scheme.size(), endpoint_.tls.enabled ? 6 : 5));
        const bool is_cluster = kind == "+cluster";
        const bool has_sentinels = kind == "+sentinel";
        if (!scheme.starts_with("redis") || !(kind.empty() || is_cluster || has_sentinels))
            fail("scheme",
                 "must be redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster or "
                 "rediss+cluster",
                 scheme);
        auto query = rest;
        auto path = detail::cut_word(query, '?');
        rest = detail::cut_word(path, '/');
        if (has_sentinels) return read_sentinels(rest, path, query);
        read_user(rest);
        if (is_cluster)
            read_servers(rest, redis_port, endpoint_.seeds);
        else
            read_host_and_port(rest);
        if (is_cluster && !path.empty() && path != "0")
            fail("database", "must be 0, because a Redis Cluster has no other");
        if (!path.empty()) read_database(path);
        read_query(query, endpoint_.tls.enabled ? names_of_tls : "none", tls_fields());
        check_tls();
    }

    void read_sentinels(std::string_view rest, std::string_view path, std::string_view query) {
        endpoint_.master = decoded("master", path.substr(0, path.find('/')));
        if (endpoint_.master.empty()) fail("master", "is missing: redis+sentinel://host,host,host/master");
        read_user(rest);
        read_servers(rest, sentinel_port, endpoint_.sentinels);
        check_text("master", endpoint_.master, longest_name);
        if (const auto database = path.find('/'); database != path.npos)
            read_database(path.substr(database + 1));

        std::string user;
        std::string password;
        std::string tls = "yes";
        auto fields = tls_fields();
        if (endpoint_.tls.enabled) fields["sentinel_tls"] = &tls;
        fields["sentinel_user"] = &user;
        fields["sentinel_password"] = &password;
        read_query(query, "sentinel_user, sentinel_password, and with TLS sentinel_tls, " + names_of_tls,
                   fields);
        check_tls();
        if (tls != "yes" && tls != "no") fail("sentinel_tls", "must be yes or no");
        for (auto& sentinel : endpoint_.sentinels) {
            sentinel.username = user;
            sentinel.password = password;
            if (tls == "yes") sentinel.tls = endpoint_.tls;
            sentinel.tls.server_name.clear();  // each Sentinel has a name of its own
        }
    }

    /// Reads a list of hosts with ports, which are separated by commas.
    void read_servers(std::string_view list, std::uint16_t usual_port, std::vector<Endpoint>& servers) {
        const auto read = [&](std::string_view server) {
            read_host_and_port(server, usual_port);
            servers.push_back(
                {.host = std::exchange(endpoint_.host, {}), .port = std::exchange(endpoint_.port, 0)});
        };
        while (const auto server = cut_before(list, ",")) read(*server);
        read(list);
    }

    /// The fields that a query may have, and where their values are stored.
    using Fields = std::map<std::string_view, std::string*>;

    Fields tls_fields() {
        auto& tls = endpoint_.tls;
        if (!tls.enabled) return {};
        return {{"ca_file", &tls.ca_file},
                {"certificate", &tls.certificate},
                {"key", &tls.key},
                {"server_name", &tls.server_name}};
    }

    void check_tls() {
        for (const auto& [name, text] : tls_fields())
            check_text(name, *text, name == "server_name" ? longest_name : longest_file_path);
    }

    void read_unix(std::string_view rest) {
        auto query = rest;
        rest = detail::cut_word(query, '?');
        const auto slash = rest.find('/');
        if (slash == rest.npos || slash + 1 == rest.size())
            fail("socket path", "must be absolute, as in unix:///run/redis.sock");
        auto user = rest.substr(0, slash);
        read_user(user);
        if (!user.empty()) fail("host", "must be empty for a unix socket; write unix:///path");
        endpoint_.unix_socket = decoded("socket path", rest.substr(slash));
        check_text("socket path", endpoint_.unix_socket, 107);  // sun_path without its final NUL
        std::string database = "0";
        read_query(query, "db", {{"db", &database}});
        read_database(database);
    }

    /// Checks a text that appears in one-line messages and is passed to interfaces that stop at a NUL.
    void check_text(std::string_view part, std::string_view text, std::size_t longest) const {
        const auto printable = [](unsigned char c) { return c >= 0x20 && c != 0x7F; };
        if (!std::ranges::all_of(text, printable)) fail(part, "has a control character");
        if (text.size() > longest) fail(part, "is longer than " + std::to_string(longest) + " bytes");
    }

    void read_query(std::string_view query, std::string_view known, const Fields& fields) {
        while (!query.empty()) {
            auto pair = detail::cut_word(query, '&');
            const auto name = cut_before(pair, "=");
            const auto field = name ? fields.find(*name) : fields.end();
            if (field == fields.end())
                fail("query", "has an unknown field; known: " + std::string{known}, name.value_or(pair));
            *field->second = decoded(*name, pair);
        }
    }

    /// Parses `user:password@` and removes it from `authority`.
    void read_user(std::string_view& authority) {
        const auto at = authority.rfind('@');
        if (at == authority.npos) return;
        auto user = authority.substr(0, at);
        authority.remove_prefix(at + 1);
        const auto name = user.substr(0, user.find(':'));
        endpoint_.username = decoded("user", name);
        if (name.size() < user.size()) endpoint_.password = decoded("password", user.substr(name.size() + 1));
        if (endpoint_.username.empty() && endpoint_.password.empty()) fail("user and password", "are empty");
    }

    void read_host_and_port(std::string_view text, std::uint16_t usual_port = redis_port) {
        endpoint_.port = usual_port;
        if (text.find(',') != text.npos) fail_as_list();
        if (text.starts_with('[')) return read_ipv6_and_port(text);
        const auto colon = text.find(':');
        if (colon != text.rfind(':'))
            fail("host",
                 "has several colons; write an IPv6 address in brackets, as in [::1]:6379, and a scheme with "
                 "two slashes, as in redis://");
        read_host(text.substr(0, colon), "._-");
        if (colon != text.npos) read_port(text.substr(colon + 1));
    }

    void read_ipv6_and_port(std::string_view text) {
        const auto end = text.find(']');
        if (end == text.npos) fail("host", "has no closing ']'");
        std::string host{text.substr(1, end - 1)};
        const auto after = text.substr(end + 1);
        if (const auto zone = host.find('%'); zone != host.npos) {
            // In a URI, the sign before the zone of an address may be encoded (RFC 6874).
            const bool may_be_encoded = uri_.find("://") != uri_.npos && host.size() > zone + 3;
            if (may_be_encoded && host.compare(zone, 3, "%25") == 0) host.erase(zone + 1, 2);
            if (zone + 1 == host.size() || host.find('%', zone + 1) != host.npos)
                fail("host", "must have a zone, such as eth0, after a single '%'");
        }
        if (host.find(':') == host.npos) fail("host", "in brackets must be an IPv6 address");
        if (!after.empty() && after.front() != ':') fail("port", "must follow ']' after a colon");
        read_host(host, ".:%_-");
        if (!after.empty()) read_port(after.substr(1));
    }

    void read_host(std::string_view host, std::string_view punctuation) {
        if (host.empty()) fail("host", "is empty");
        const auto allowed = [punctuation](unsigned char c) {
            return std::isalnum(c) != 0 || c >= 0x80 ||
                   punctuation.find(static_cast<char>(c)) != punctuation.npos;
        };
        if (!std::ranges::all_of(host, allowed))
            fail("host", "has a character that a host name must not have");
        check_text("host", host, longest_name);
        endpoint_.host = host;
    }

    void read_port(std::string_view text) {
        endpoint_.port = static_cast<std::uint16_t>(number("port", text, 1, 65'535));
    }

    void read_database(std::string_view text) { endpoint_.database = number("database", text, 0, 1'000'000); }

    int number(std::string_view part, std::string_view text, int least, int most) const {
        const auto value = detail::whole_number<int>(text, most);
        if (!value || *value < least)
            fail(part, "must be a number from " + std::to_string(least) + " to " + std::to_string(most));
        return *value;
    }

    std::string decoded(std::string_view part, std::string_view text) const {
        std::string result;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '%') {
                result += text[i];
                continue;
            }
            unsigned byte = 0;
            const auto digits = text.substr(i + 1, 2);
            const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
            if (error != std::errc{} || end != digits.data() + 2 || digits.size() != 2)
                fail(part, "has a '%' without two hex digits; write %25 for the sign itself");
            result += static_cast<char>(byte);
            i += 2;
        }
        return result;
    }

    std::string_view uri_;
    bool may_quote_;
    Endpoint endpoint_{};
};

}  // namespace

bool may_have_password(std::string_view text) {
    return text.find('@') != text.npos || text.find("password=") != text.npos;
}

Endpoint parse_address(std::string_view uri, bool may_quote) {
    return Parser{uri, may_quote && !may_have_password(uri)}.parse();
}

void throw_unusable(const Endpoint& endpoint, const std::string& problem) {
    throw std::invalid_argument("redlock: node " + endpoint.name() + ": " + problem);
}

Endpoint Endpoint::parse(std::string_view uri) {
    return parse_address(uri, true);
}

std::string Endpoint::name() const {
    if (!unix_socket.empty()) return unix_socket;
    if (!sentinels.empty()) return master + "@" + sentinels.front().name();
    if (!seeds.empty()) return "cluster@" + seeds.front().name();
    const bool ipv6 = host.find(':') != std::string::npos;
    return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace redlock
