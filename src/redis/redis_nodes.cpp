#include <redlock/detail/not_copied.hpp>
#include <redlock/process.hpp>
#include <redlock/redis_nodes.hpp>

#include "../lock/option_checks.hpp"
#include "../loop/loop_group.hpp"
#include "../os/os_network.hpp"
#include "lanes.hpp"
#include "parse_address.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

namespace redlock {
namespace {

template <class Uris, class Text = std::identity>
std::vector<Endpoint> parsed(const Uris& uris, Text text = {}) {
    const bool secret =
        std::ranges::any_of(uris, [&](const auto& uri) { return may_have_password(std::invoke(text, uri)); });
    std::vector<Endpoint> endpoints;
    endpoints.reserve(uris.size());
    for (const auto& uri : uris) try {
            endpoints.push_back(parse_address(std::invoke(text, uri), !secret));
        } catch (const std::invalid_argument& error) {
            if (uris.size() == 1) throw;
            std::string problem = error.what();
            constexpr std::string_view begin = "redlock: node address";
            problem.insert(begin.size(),
                           " " + std::to_string(endpoints.size() + 1) + " of " + std::to_string(uris.size()));
            throw std::invalid_argument(problem);
        }
    return endpoints;
}

/// Returns a text that is the same for two endpoints if they are obviously the same server: the name, with
/// the host in lower case. Sentinel distinguishes upper and lower case in the name of a master.
std::string identity(const Endpoint& endpoint) {
    if (!endpoint.sentinels.empty()) return endpoint.master + "@" + identity(endpoint.sentinels.front());
    auto name = endpoint.name();
    if (endpoint.unix_socket.empty())
        std::ranges::transform(name, name.begin(),
                               [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
    return name;
}

void check(const Endpoint& endpoint) {
    const bool has_sentinels = !endpoint.sentinels.empty();
    if (has_sentinels != !endpoint.master.empty())
        throw_unusable(endpoint, "a master name and Sentinels must be given together");
    for (const auto& sentinel : endpoint.sentinels) check(sentinel);
    const bool is_cluster = !endpoint.seeds.empty();
    for (const auto& seed : endpoint.seeds) {
        check(seed);
        if (!seed.unix_socket.empty() || !seed.sentinels.empty() || !seed.seeds.empty())
            throw_unusable(endpoint, "each seed of a Redis Cluster must be a host and port");
    }
    if (is_cluster && (has_sentinels || !endpoint.unix_socket.empty()))
        throw_unusable(endpoint, "a Redis Cluster has neither Sentinels nor a unix socket");
    if (is_cluster && endpoint.database != 0)
        throw_unusable(endpoint, "database must be 0, because a Redis Cluster has no other");
    const bool has_host = endpoint.unix_socket.empty() && !has_sentinels && !is_cluster;
    if (has_host && endpoint.host.empty()) throw_unusable(endpoint, "host is empty");
    if (has_host && endpoint.port == 0) throw_unusable(endpoint, "port is 0; it must be from 1 to 65535");
    if (has_sentinels && endpoint.tls.enabled && endpoint.tls.server_name.empty())
        throw_unusable(endpoint, "TLS with Sentinels requires tls.server_name");
    if (endpoint.database < 0) throw_unusable(endpoint, "database is negative");
    constexpr std::size_t longest_socket_path = 107;  // sun_path without its final NUL
    if (endpoint.unix_socket.size() > longest_socket_path)
        throw_unusable(endpoint, "the socket path is longer than 107 bytes");
    if (endpoint.tls.enabled && !endpoint.unix_socket.empty())
        throw_unusable(endpoint, "TLS is for host and port, not a unix socket");
}

/// Returns the names of the endpoints. Throws std::invalid_argument if one of them is unusable or listed
/// twice (rule D8).
std::vector<std::string> names_of(const std::vector<Endpoint>& endpoints) {
    std::vector<std::string> names;
    std::vector<std::string> seen;
    for (const auto& endpoint : endpoints) {
        check(endpoint);
        names.push_back(endpoint.name());
        if (endpoint.seeds.empty()) seen.push_back(identity(endpoint));
        for (const auto& seed : endpoint.seeds) seen.push_back(identity(seed));
    }
    std::ranges::sort(seen);
    if (const auto twice = std::ranges::adjacent_find(seen); twice != seen.end())
        throw std::invalid_argument("redlock: node " + *twice +
                                    " is in the list twice; N nodes must be N independent masters");
    return names;
}

const NodesOptions& checked(const NodesOptions& options) {
    using namespace std::chrono_literals;
    detail::require(options.node_timeout >= 1ms && options.node_timeout <= 1h, "NodesOptions::node_timeout",
                    options.node_timeout, "be from 1 ms to 1 h");
    detail::require(options.max_idle >= 1 && options.max_idle <= 10'000, "NodesOptions::max_idle",
                    options.max_idle, "be from 1 to 10000");
    detail::require(options.tcp_keepalive >= 0s && options.tcp_keepalive <= 2h, "NodesOptions::tcp_keepalive",
                    std::to_string(options.tcp_keepalive.count()) + " s", "be from 0 s (off) to 2 h");
    detail::require(options.quarantine >= 0ms && options.quarantine <= detail::longest_ttl,
                    "NodesOptions::quarantine", options.quarantine, "be from 0 to ", detail::longest_ttl,
                    " (100 years)");
    return options;
}

std::vector<NodeConfig> configs_of(std::vector<Endpoint> endpoints, const NodesOptions& options) {
    std::vector<NodeConfig> configs;
    configs.reserve(endpoints.size());
    for (auto& endpoint : endpoints) {
        configs.push_back(NodeConfig::of(std::move(endpoint), options.node_timeout, options.quarantine));
        configs.back().credentials = options.credentials;
    }
    return configs;
}

}  // namespace

/// The state of the nodes in one process.
struct RedisNodes::Impl : detail::NotCopied {
    Impl(std::vector<NodeConfig> of_nodes, NodesOptions of_user)
        : configs(for_one_process(std::move(of_nodes))), options(std::move(of_user)) {}
    ~Impl() { former->close(lanes); }

    const std::vector<NodeConfig> configs;
    const NodesOptions options;
    const std::int64_t process = this_process();
    OsNetwork network{options.tcp_keepalive};
    // The C++ library says 0 if it does not know the number of processors.
    Lanes lanes{configs, options, network, std::max(std::thread::hardware_concurrency(), 1U)};
    const std::shared_ptr<loop::FormerGroups> former = std::make_shared<loop::FormerGroups>();
};

RedisNodes::RedisNodes(std::initializer_list<Uri> uris, NodesOptions options)
    : RedisNodes(parsed(uris, &Uri::view), std::move(options)) {}

RedisNodes::RedisNodes(const std::vector<std::string>& uris, NodesOptions options)
    : RedisNodes(parsed(uris), std::move(options)) {}

RedisNodes::RedisNodes(std::vector<Endpoint> endpoints, NodesOptions options)
    : Nodes(names_of(endpoints), checked(options).node_timeout, options.quarantine),
      has_cluster_(std::ranges::any_of(endpoints, [](const auto& it) { return !it.seeds.empty(); })),
      impl_(nullptr) {
    detail::require(!has_cluster_ || options.quarantine == options.quarantine.zero(),
                    "NodesOptions::quarantine", options.quarantine,
                    "be 0 if a node is a Redis Cluster, because its replicas are promoted without a bound on "
                    "what they have lost");
    auto configs = configs_of(std::move(endpoints), options);
    impl_ = new Impl(std::move(configs), std::move(options));
}

/// In a child of fork() the destructor only closes the copies of the sockets.
RedisNodes::~RedisNodes() {
    auto* const impl = impl_.load();
    if (impl->process == this_process())
        delete impl;
    else
        impl->network.close_in_child();
}

Clock* RedisNodes::required_clock() const noexcept {
    return &boot_clock();
}

void RedisNodes::ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
    own().lanes.ask(requests, limits, tallies);
}

std::unique_ptr<Waiter> RedisNodes::waiter() {
    return own().lanes.waiter();
}

std::shared_ptr<loop::Rounds> RedisNodes::rounds_in(EventLoop& loop,
                                                    const std::shared_ptr<loop::Scheduler>& scheduler) {
    auto& impl = own();
    return std::make_shared<loop::LoopGroup>(scheduler, loop, impl.configs, impl.options,
                                             std::make_shared<OsNetwork>(impl.network), impl.former);
}

/// Returns the state of this process. A child of fork() makes one of its own (rule D10).
RedisNodes::Impl& RedisNodes::own() {
    auto* const before = impl_.load();
    auto& impl = detail::of_this_process(
        impl_, [](Impl* parents) { return std::make_unique<Impl>(parents->configs, parents->options); });
    if (&impl != before) before->network.close_in_child();
    return impl;
}

}  // namespace redlock
