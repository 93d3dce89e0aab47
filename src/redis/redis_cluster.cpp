#include "redis_cluster.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace redlock {

using namespace std::chrono_literals;

namespace {

constexpr auto shortest_refresh = 1s;

/// Returns the settings of a server of the Cluster `node`. Its certificate must have the name of this server,
/// unless the address of the node says otherwise.
ClusterServer settings_of(const NodeConfig& node, std::string host, std::uint16_t port) {
    auto config = node;
    config.endpoint.seeds.clear();
    config.endpoint.host = std::move(host);
    config.endpoint.port = port;
    if (config.tls && config.endpoint.tls.server_name.empty())
        config.tls = std::make_shared<const TlsContext>(*config.tls, config.endpoint);
    if (config.credentials)
        config.credentials = [get = node.credentials, name = node.endpoint.name()](std::string_view) {
            return get(name);
        };
    config.server = std::make_shared<Server>();
    return std::make_shared<const NodeConfig>(std::move(config));
}

}  // namespace

RedisCluster::RedisCluster(const NodeConfig& node) : node_(node) {
    for (const auto& seed : node.endpoint.seeds)
        servers_.push_back({.server = settings_of(node_, seed.host, seed.port), .is_seed = true});
}

ClusterServer RedisCluster::server_of(std::uint16_t hash_slot) const {
    const std::lock_guard guard{mutex_};
    return hash_slots_[hash_slot] ? hash_slots_[hash_slot]->server : nullptr;
}

std::vector<ClusterServer> RedisCluster::servers() const {
    const std::lock_guard guard{mutex_};
    std::vector<ClusterServer> result;
    result.reserve(servers_.size());
    for (const auto& it : servers_) result.push_back(it.server);
    return result;
}

std::vector<ClusterServer> RedisCluster::debtors() const {
    const std::lock_guard guard{mutex_};
    std::vector<ClusterServer> result;
    for (const auto& it : servers_)
        if (!it.server->server->kept().none()) result.push_back(it.server);
    return result;
}

/// Returns null if there are too many servers.
auto RedisCluster::find_locked(const detail::ServerAddress& address, std::string_view asked) -> Known* {
    const auto host = address.host.empty() ? asked : address.host;
    const auto it = std::ranges::find_if(servers_, [&](const Known& known) {
        const auto& endpoint = known.server->endpoint;
        return endpoint.port == address.port && (endpoint.host == host || known.other_name == host);
    });
    if (it != servers_.end()) return &*it;
    if (servers_.size() == most_servers) return nullptr;
    return &servers_.emplace_back(Known{.server = settings_of(node_, std::string{host}, address.port)});
}

ClusterServer RedisCluster::server_at(const detail::ServerAddress& address, std::string_view asked) {
    const std::lock_guard guard{mutex_};
    const auto* const known = find_locked(address, asked);
    return known ? known->server : nullptr;
}

// ---- The list

void RedisCluster::redirected(const detail::Redirection& to, std::string_view asked) {
    const std::lock_guard guard{mutex_};
    moving_[to.hash_slot] = to.asking;
    if (to.asking) return;
    outdated_ = true;
    hosts_are_unknown_ = to.to.host.empty();
    if (const auto* const known = find_locked(to.to, asked)) hash_slots_[to.hash_slot] = known;
}

/// Without TLS, the address of a server is used, because its host name may be for others only. With TLS, its
/// certificate has the host name. MOVED may use either, so both are remembered.
void RedisCluster::learn(std::string_view nodes, std::string_view asked) {
    outdated_ = false;
    const auto masters = detail::parse_cluster_nodes(nodes);
    if (masters.empty()) return;
    const std::lock_guard guard{mutex_};
    // If there are many, forgets those that no group has used. The list may name them again.
    if (servers_.size() > most_servers / 2)
        std::erase_if(servers_, [](const Known& it) {
            return !it.is_seed && it.server->server.use_count() == 1 && it.server->server->kept().none();
        });
    std::ranges::fill(hash_slots_, nullptr);
    for (auto& it : servers_)
        if (it.hash_slots == HashSlots::serves) it.hash_slots = HashSlots::served;
    for (const auto& master : masters) {
        auto [name, other] = std::pair{master.address.host, master.host_name};
        if (node_.tls && !other.empty()) std::swap(name, other);
        if (hosts_are_unknown_) name = other = {};
        auto* const known = find_locked({name, master.address.port}, asked);
        if (!known) continue;
        known->other_name = other;
        known->hash_slots = HashSlots::serves;
        for (const auto& [first, last] : master.hash_slots)
            std::fill(hash_slots_.begin() + first, hash_slots_.begin() + last + 1, known);
    }
    was_answered_ = true;
    for (const auto& it : servers_)
        if (std::ranges::find(hash_slots_, &it) == hash_slots_.end()) move_releases_locked(*it.server);
}

bool RedisCluster::is_moving(std::uint16_t hash_slot) const {
    const std::lock_guard guard{mutex_};
    return moving_[hash_slot];
}

bool RedisCluster::refresh_is_due(Clock::time_point now) const {
    if (!outdated_) return false;
    if (!was_answered_) return true;
    const std::lock_guard guard{mutex_};
    return now >= next_refresh_;
}

bool RedisCluster::begin_refresh(Clock::time_point now) {
    if (!refresh_is_due(now)) return false;
    const std::lock_guard guard{mutex_};
    next_refresh_ = now + shortest_refresh;
    return true;
}

// ---- Releases

void RedisCluster::keep(const detail::PendingReply& release, const detail::Redirection& to,
                        std::string_view asked) {
    const auto server = server_at(to.to, asked);
    if (!server) return;
    detail::PendingReplies kept;
    kept.add_repetition(release).asking = to.asking;
    server->server->kept().keep(std::move(kept), true);
}

bool RedisCluster::has_replaced(const NodeConfig& server) {
    const std::lock_guard guard{mutex_};
    const auto it = std::ranges::find_if(
        servers_, [&](const auto& known) { return known.server->server == server.server; });
    if (it == servers_.end() || it->hash_slots != HashSlots::served) return false;
    move_releases_locked(*it->server);
    return true;
}

/// Gives the releases of a server that serves no hash slot any more to those that serve their hash slots.
void RedisCluster::move_releases_locked(const NodeConfig& former) {
    if (former.server->kept().none()) return;
    std::vector<std::pair<KeptReleases*, detail::PendingReplies>> moved;
    former.server->kept().send_again(true, Clock::never(), [&](const detail::PendingReply& release) {
        const auto* const serving = hash_slots_[detail::hash_slot_of(release.resources.front())];
        detail::PendingReplies kept;
        kept.add_repetition(release).repeats = release.repeats;
        moved.emplace_back(&(serving ? *serving->server : former).server->kept(), std::move(kept));
    });
    for (auto& [server, kept] : moved) server->keep(std::move(kept), true);
}

// ---- RequestsByServer

RequestsByServer::RequestsByServer(const RedisClusters& clusters, std::span<const Request> requests,
                                   std::span<Tally> tallies)
    : all_(requests), all_tallies_(tallies) {
    const bool may_share = std::ranges::all_of(requests, [](const Request& it) {
        return detail::effect_of(it.command) == detail::KeyEffect::extends;
    });
    if (requests.size() == 1 || (may_share && clusters.empty())) parts_ = 1;
    if (parts_ == 1) return;
    std::map<std::vector<ClusterServer>, std::size_t> known;
    for (const auto& request : all_) {
        const auto hash_slot = detail::hash_slot_of(request.command.resources.front());
        std::vector<ClusterServer> servers;
        for (const auto& cluster : clusters) servers.push_back(cluster->server_of(hash_slot));
        const bool alone = !may_share || std::ranges::any_of(clusters, [hash_slot](const auto& it) {
            return it->is_moving(hash_slot);
        });
        const auto number = alone ? parts_ : known.emplace(std::move(servers), parts_).first->second;
        numbers_.push_back(number);
        if (number == parts_) ++parts_;
    }
}

bool RequestsByServer::next() {
    store();
    if (present_ == parts_) return false;
    for (std::size_t i = 0; i < numbers_.size(); ++i)
        if (numbers_[i] == present_) {
            part_.push_back(all_[i]);
            part_tallies_.push_back(all_tallies_[i]);
        }
    ++present_;
    return true;
}

void RequestsByServer::store() noexcept {
    auto tally = part_tallies_.begin();
    for (std::size_t i = 0; i < all_.size() && tally != part_tallies_.end(); ++i)
        if (numbers_[i] + 1 == present_) all_tallies_[i] = std::move(*tally++);
    part_.clear();
    part_tallies_.clear();
}

}  // namespace redlock
