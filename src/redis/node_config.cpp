#include "node_config.hpp"

#include "../os/network.hpp"
#include "../os/os_network.hpp"
#include "parse_address.hpp"
#include "redis_cluster.hpp"
#include "sentinel_query.hpp"

#include <string>
#include <utility>

namespace redlock {

NodeConfig NodeConfig::of(Endpoint endpoint, std::chrono::milliseconds node_timeout,
                          std::chrono::milliseconds quarantine) {
    NodeConfig config{
        .endpoint = std::move(endpoint), .node_timeout = node_timeout, .quarantine = quarantine};
    auto with_host = config.endpoint;
    if (!with_host.seeds.empty()) with_host.host = with_host.seeds.front().host;
    if (with_host.tls.enabled) config.tls = std::make_shared<const TlsContext>(with_host);
    std::vector<NodeConfig> sentinels;
    if (config.endpoint.sentinels.size() > Network::max_entries)
        throw_unusable(config.endpoint, std::to_string(config.endpoint.sentinels.size()) +
                                            " Sentinels; there must be at most " +
                                            std::to_string(Network::max_entries));
    for (const auto& sentinel : config.endpoint.sentinels) sentinels.push_back(of(sentinel, node_timeout));
    if (!sentinels.empty())
        config.sentinels = std::make_shared<const std::vector<NodeConfig>>(std::move(sentinels));
    return config;
}

std::shared_ptr<Resolution> NodeConfig::find_server() const {
    if (!endpoint.unix_socket.empty()) return Resolution::of_unix_socket(endpoint.unix_socket);
    if (!has_sentinels()) return Resolution::of_host(endpoint.host, endpoint.port);
    if (asks_sentinels) return asks_sentinels();
    auto node = *this;
    node.server.reset();  // it owns the result, and must not be destroyed by this thread
    return Resolution::in_thread([node = std::move(node)](const std::stop_token& stop) {
        OsNetwork network;
        return query_sentinels(node, stop, network);
    });
}

void NodeConfig::failed(detail::NodeFailure failure, Clock::time_point now, Entropy& entropy) const {
    if (cluster) cluster->outdated();
    server->failed(std::move(failure), now, entropy);
}

std::vector<NodeConfig> for_one_process(std::vector<NodeConfig> configs) {
    for (auto& it : configs) {
        it.server = std::make_shared<Server>();
        it.cluster.reset();
        if (!it.endpoint.seeds.empty()) it.cluster = std::make_shared<RedisCluster>(it);
    }
    return configs;
}

}  // namespace redlock
