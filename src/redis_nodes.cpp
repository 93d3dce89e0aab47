#include <redlock/options.hpp>
#include <redlock/process.hpp>
#include <redlock/redis_nodes.hpp>

#include "node.hpp"
#include "pipeline.hpp"
#include "round_trip.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace redlock {
namespace {

template <class Uris>
std::vector<Endpoint> parsed(const Uris& uris) {
    std::vector<Endpoint> endpoints;
    endpoints.reserve(uris.size());
    for (const auto& uri : uris) endpoints.push_back(Endpoint::parse(uri));
    return endpoints;
}

/// What tells whether two endpoints are one server, as far as that can be told without asking.
std::string identity(const Endpoint& endpoint) {
    auto name = endpoint.name();
    if (endpoint.unix_socket.empty())
        std::ranges::transform(name, name.begin(),
                               [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
    return name;
}

void check(const Endpoint& endpoint) {
    const auto refuse = [&](const std::string& problem) {
        throw std::invalid_argument("redlock: node " + endpoint.name() + ": " + problem);
    };
    if (endpoint.host.empty() && endpoint.unix_socket.empty()) refuse("host is empty");
    if (endpoint.port == 0 && endpoint.unix_socket.empty()) refuse("port is 0; it must be from 1 to 65535");
    if (endpoint.database < 0) refuse("database is negative");
    constexpr std::size_t longest_path = 107;  // sun_path less its NUL
    if (endpoint.unix_socket.size() > longest_path) refuse("the socket path is longer than 107 bytes");
    if (endpoint.tls.enabled && !endpoint.unix_socket.empty())
        refuse("TLS is for host and port, not a unix socket");
}

/// The names of the endpoints, all of them usable and none twice (rule D8).
std::vector<std::string> names_of(const std::vector<Endpoint>& endpoints) {
    std::vector<std::string> names;
    std::vector<std::string> seen;
    for (const auto& endpoint : endpoints) {
        check(endpoint);
        names.push_back(endpoint.name());
        seen.push_back(identity(endpoint));
    }
    std::ranges::sort(seen);
    if (const auto twice = std::ranges::adjacent_find(seen); twice != seen.end())
        throw std::invalid_argument("redlock: node " + *twice +
                                    " is in the list twice; N nodes must be N independent masters");
    return names;
}

const NodesOptions& checked(const NodesOptions& options) {
    using namespace std::chrono_literals;
    if (options.node_timeout < 1ms || options.node_timeout > 1h)
        detail::refuse("NodesOptions::node_timeout", detail::text(options.node_timeout),
                       "be from 1 ms to 1 h");
    if (options.max_idle < 1 || options.max_idle > 10'000)
        detail::refuse("NodesOptions::max_idle", std::to_string(options.max_idle), "be from 1 to 10000");
    if (options.quarantine < 0ms || options.quarantine > detail::longest_ttl)
        detail::refuse("NodesOptions::quarantine", detail::text(options.quarantine),
                       "be from 0 to " + detail::text(detail::longest_ttl) + " (100 years)");
    return options;
}

/// An endpoint, and what its TLS connections share; null without TLS.
struct Site {
    Endpoint endpoint;
    std::shared_ptr<const TlsContext> tls;
};

std::vector<Site> sites_of(std::vector<Endpoint> endpoints) {
    std::vector<Site> sites;
    for (auto& endpoint : endpoints) {
        auto tls = endpoint.tls.enabled ? std::make_shared<const TlsContext>(endpoint) : nullptr;
        sites.push_back({std::move(endpoint), std::move(tls)});
    }
    return sites;
}

}  // namespace

/// The nodes as this process knows them.
class RedisNodes::Impl {
public:
    Impl(std::vector<Site> sites, NodesOptions options)
        : sites_(std::move(sites)), options_(options), process_(this_process()), roster_(sites_.size()) {
        for (const auto& [endpoint, tls] : sites_)
            nodes_.push_back(std::make_unique<Node>(endpoint, tls, options_));
    }

    bool here() const noexcept { return process_ == this_process(); }
    std::unique_ptr<Impl> remade() const { return std::make_unique<Impl>(sites_, options_); }

    void run(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
        const auto start = boot_clock().now();
        if (requests.size() == 1)
            run(requests.front(), limits, tallies.front());
        else
            Pipeline{nodes_, roster_, requests, limits.deadline, options_.node_timeout, tallies}.run();
        if (!options_.observer) return;
        const auto took = boot_clock().now() - start;
        for (std::size_t i = 0; i < requests.size(); ++i) tell(requests[i].command, tallies[i], took);
    }

private:
    void run(const Request& request, const RoundLimits& limits, Tally& tally) {
        const auto verb = request.command.verb;
        RoundTrip trip{nodes_, roster_, request, limits, options_.node_timeout, tally};
        if (verb == Verb::compare_and_delete)
            trip.all_at_once_to_the_end();
        else if (acquires(verb) && options_.round == Round::sequential)
            trip.one_after_the_other();
        else
            trip.all_at_once();
    }

    void tell(const Command& command, const Tally& tally, Clock::duration took) const {
        auto& observer = *options_.observer;
        for (std::size_t node = 0; node < nodes_.size(); ++node)
            for (const auto& event : nodes_[node]->take_events()) tell(tally[node].name, event);
        observer.round_ended(command, tally, took);
    }

    void tell(std::string_view node, const NodeEvent& event) const {
        auto& observer = *options_.observer;
        const auto& [cause, detail] = event.failure;
        switch (event.kind) {
            case NodeEvent::Kind::connecting: return observer.connecting(node);
            case NodeEvent::Kind::disconnected: return observer.disconnected(node, cause, detail);
            case NodeEvent::Kind::backing_off: return observer.backing_off(node, cause, detail, event.pause);
        }
    }

    std::vector<Site> sites_;
    NodesOptions options_;
    std::int64_t process_;
    Roster roster_;
    std::vector<std::unique_ptr<Node>> nodes_{};
};

RedisNodes::RedisNodes(std::initializer_list<std::string_view> uris, NodesOptions options)
    : RedisNodes(parsed(uris), options) {}

RedisNodes::RedisNodes(const std::vector<std::string>& uris, NodesOptions options)
    : RedisNodes(parsed(uris), options) {}

RedisNodes::RedisNodes(std::vector<Endpoint> endpoints, NodesOptions options)
    : Nodes(names_of(endpoints), checked(options).node_timeout, options.quarantine),
      impl_(new Impl(sites_of(std::move(endpoints)), options)) {}

RedisNodes::~RedisNodes() {
    if (auto* const impl = impl_.load(); impl->here()) delete impl;
}

void RedisNodes::ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
    here().run(requests, limits, tallies);
}

/// In a child of fork() the connections are the parent's, and another thread of the parent may have been
/// about to change them: the child leaves them as they are and starts anew (rule D10).
RedisNodes::Impl& RedisNodes::here() {
    auto* impl = impl_.load();
    if (impl->here()) return *impl;
    auto mine = impl->remade();
    if (impl_.compare_exchange_strong(impl, mine.get())) return *mine.release();
    return *impl;  // another thread of the child was faster
}

}  // namespace redlock
