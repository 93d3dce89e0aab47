#include "node_group.hpp"

#include "../round/hash_slot.hpp"
#include "group_waiter.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace redlock {

using namespace std::chrono_literals;

NodeGroup::NodeGroup(const std::vector<NodeConfig>& configs, NodesOptions options, Network& network,
                     Writes writes)
    : options_(std::move(options)), network_(network), writes_(writes) {
    for (const auto& config : configs) {
        const auto& cluster = config.cluster;
        nodes_.push_back(&add_node(cluster ? *cluster->servers().front() : config, cluster, nodes_.size()));
        listeners_.push_back(
            std::make_unique<ListenerPool>(nodes_.back()->config(), network_, options_.max_idle));
        if (cluster) clusters_.push_back(cluster);
    }
}

NodeGroup::~NodeGroup() {
    if (!closed_) close(std::array{this});
}

void NodeGroup::close(std::span<NodeGroup* const> groups) noexcept {
    for (auto* const group : groups) group->closed_ = true;
    const auto& first = *groups.front();
    try {
        const auto start = first.network_.clock().now();
        const auto attempt = [&](Clock::time_point deadline) {
            // The releases of broken connections get one more attempt, even if the node is not trusted.
            for (const auto* const group : groups)
                for (const auto& node : group->all_) node->server().kept().permit_attempt();
            bool done = send_the_rest(groups, deadline, true);
            for (const auto* const group : groups)
                for (const auto& node : group->all_) done = done && node->server().kept().none();
            return done;
        };
        // Reads the replies that have come. A server may have refused a release for now.
        (void)send_the_rest(groups, start, false);
        // The first attempt may find that a server is busy.
        const auto half = start + first.options_.node_timeout / 2;
        if (attempt(half)) return;
        first.network_.wait({}, first.network_.clock().now(), half);
        for (const auto* const group : groups)
            for (const auto& node : group->all_) node->leave_forgotten(half);
        (void)attempt(start + first.options_.node_timeout);
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is no memory; the keys will expire
    }
}

void NodeGroup::give_up() noexcept {
    closed_ = true;
    for (const auto& node : all_) node->close_connections(network_.clock().now());
}

bool NodeGroup::send_the_rest(std::span<NodeGroup* const> groups, Clock::time_point deadline,
                              bool sends_kept) {
    auto& network = groups.front()->network_;
    std::vector<Connection*> owing;
    std::vector<PollEntry> entries;
    // Even if the deadline has passed, the sockets get one chance, because they mostly accept all bytes.
    for (auto now = Clock::time_point::min(); now < deadline;) {
        now = network.clock().now();
        owing.clear();
        entries.clear();
        // The server of a Redis Cluster that must get a release may be one that was not used before. It is
        // enough if one of the groups finds it, because all share the kept releases.
        if (sends_kept) groups.front()->find_debtors();
        for (const auto* const group : groups)
            for (const auto& node : group->all_) node->append_unfinished(owing, sends_kept);
        if (owing.empty()) return true;
        for (const auto* const connection : owing) entries.push_back(connection->poll_entry());
        // A kept release may become due meanwhile, so the loop must not wait for long.
        network.wait(entries, now, std::min<Clock::time_point>(deadline, now + 10ms));
        for (auto* const connection : owing) connection->advance();
    }
    return false;
}

// ---- The choice of a Node

Node& NodeGroup::add_node(NodeConfig config, std::shared_ptr<RedisCluster> cluster, std::size_t index) {
    config.cluster = std::move(cluster);
    if (options_.observer) config.server->observe();
    const Node::Options options{.collects = writes_ == Writes::collected, .index = index};
    return *all_.emplace_back(std::make_unique<Node>(std::move(config), network_, options));
}

Node& NodeGroup::node_of(std::size_t index, const ClusterServer& server) {
    for (const auto& node : all_)
        if (node->config().server == server->server) return *node;
    return add_node(*server, nodes_[index]->cluster(), index);
}

Node* NodeGroup::served_by(std::size_t index, const Command& command) {
    const auto server = nodes_[index]->cluster()->server_of(detail::hash_slot_of(command.resources.front()));
    return server ? &node_of(index, server) : nullptr;
}

NodeGroup::Route NodeGroup::route_in_cluster(std::size_t index, const Command& command,
                                             Clock::time_point now) {
    const auto& cluster = nodes_[index]->cluster();
    if (!acquires(command.verb))
        for (const auto& node : all_)
            if (const auto* const set =
                    node->index() == index ? node->binding_command_of(command.owner) : nullptr)
                return {node.get(), set->asking};
    auto* const serving = served_by(index, command);
    if (serving && (serving->trusted(now) || !cluster->refresh_is_due(now))) return {serving};
    auto servers = cluster->servers();
    const auto other =
        std::ranges::find_if(servers, [now](const auto& it) { return it->server->health(now).trusted; });
    if (other != servers.end()) return {&node_of(index, *other)};
    // All have failed. They are tried one after the other, because any of them can name the server of the
    // hash slot.
    for (std::size_t i = 0; i < servers.size(); ++i) {
        const auto& server = servers[next_server_++ % servers.size()];
        if (server->server->health(now).probe_due) return {&node_of(index, server)};
    }
    return {serving ? serving : nodes_[index]};
}

Node* NodeGroup::redirected(const Node& from, const detail::Redirection& to) {
    const auto server = from.cluster()->server_at(to.to, from.config().endpoint.host);
    return server ? &node_of(from.index(), server) : nullptr;
}

/// Calls the function with each Node, also with those that are added meanwhile: a round that continues may
/// use another server of a Redis Cluster.
template <class Function>
void NodeGroup::for_each_node(Function function) {
    // NOLINTNEXTLINE(modernize-loop-convert)
    for (std::size_t i = 0; i < all_.size(); ++i) function(*all_[i]);
}

void NodeGroup::prepare_clusters(Clock::time_point now) {
    if (clusters_.empty()) return;
    find_debtors();
    for_each_node([now](Node& it) {
        if (it.cluster()) it.leave_former_server(now);
    });
}

void NodeGroup::find_debtors() {
    for (const auto* const node : nodes_)
        if (node->cluster())
            for (const auto& server : node->cluster()->debtors()) (void)node_of(node->index(), server);
}

// ---- Rounds

Clock::time_point NodeGroup::write_collected(Clock::time_point now) {
    auto next = Clock::never();
    // The first node is the last, as in QuorumRound::next_to_ask().
    for (auto i = all_.size(); i > 0; --i) next = std::min(next, all_[i - 1]->write_collected(now));
    return next;
}

/// The order of the nodes does not matter here. A release that wakes a waiter is awaited, so mostly
/// write_collected() has written it.
Rest NodeGroup::write_all(Clock::time_point now) {
    auto rest = Rest::nothing;
    for_each_node([&](Node& it) { rest = std::max(rest, it.write_all(now)); });
    return rest;
}

void NodeGroup::give_up_unwritten(Clock::time_point now) {
    for_each_node([now](Node& it) { it.give_up_unwritten(now); });
}

bool NodeGroup::check_silence(Clock::time_point now) {
    bool any = false;
    for_each_node([&](Node& it) { any = it.check_silence(now) || any; });
    return any;
}

void NodeGroup::add_late_replies(detail::LateReplies& late) const {
    for (const auto& node : all_) node->add_late_replies(late);
}

std::size_t NodeGroup::count_unconnected() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        nodes_, [](const Node* it) { return !it->cluster() && it->lacks_connection(); }));
}

void NodeGroup::append_poll_entries(std::vector<PollEntry>& entries, Node::Polled polled) const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
        auto next = entries.size();
        all_[i]->append_poll_entries(entries, polled);
        for (; next < entries.size(); ++next) entries[next].node = static_cast<std::uint16_t>(i);
    }
}

void NodeGroup::take_ready(std::span<const PollEntry> entries, Clock::time_point now) {
    for (const auto& entry : entries)
        if (entry.ready) all_[entry.node]->take_ready(entry.fd, now);
}

std::unique_ptr<Waiter> NodeGroup::waiter() {
    return std::make_unique<GroupWaiter>(*this);
}

void NodeGroup::notify(std::span<const Request> requests, std::span<const Tally> tallies,
                       std::chrono::nanoseconds took) const {
    if (!options_.observer) return;
    // The thread need not lead, so it must not use the list of all Node objects.
    for (const auto* const node : nodes_) {
        const auto name = tallies.front()[node->index()].name;
        if (!node->cluster())
            for (const auto& event : node->server().take_events()) event(*options_.observer, name);
        else
            for (const auto& server : node->cluster()->servers())
                for (const auto& event : server->server->take_events()) event(*options_.observer, name);
    }
    for (std::size_t i = 0; i < requests.size(); ++i)
        options_.observer->round_ended(requests[i].command, tallies[i], took);
}

}  // namespace redlock
