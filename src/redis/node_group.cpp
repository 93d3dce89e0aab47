#include "redis/node_group.hpp"

#include "redis/group_waiter.hpp"
#include "redis/round_driver.hpp"

#include <algorithm>

namespace redlock {
namespace {

/// Longer than any round: a round waits for each of its nodes for `node_timeout` at most, twice if it has to
/// connect anew.
Clock::duration lapse_of(std::size_t nodes, Clock::duration node_timeout) {
    return std::max<Clock::duration>(std::chrono::minutes{1}, 2 * nodes * node_timeout);
}

}  // namespace

using namespace std::chrono_literals;

NodeGroup::NodeGroup(const std::vector<NodeConfig>& configs, const NodesOptions& options, Network& network)
    : options_(options),
      network_(network),
      servers_(configs.size(), lapse_of(configs.size(), options.node_timeout)) {
    for (const auto& config : configs)
        nodes_.push_back(std::make_unique<Node>(
            config, network_,
            Node::Options{.max_idle = options_.max_idle, .observed = options_.observer != nullptr}));
    sender_ = network_.make_task([this](Clock::time_point now) { return send_unsent(now); });
}

NodeGroup::~NodeGroup() {
    sender_.reset();
    try {
        send_the_rest();
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory; the keys expire
    }
}

/// A connection may still be being made, or a socket has taken only a part of a release. All nodes together
/// have one node_timeout for what is left.
void NodeGroup::send_the_rest() {
    const auto start = network_.clock().now();
    const auto deadline = start + options_.node_timeout;
    std::vector<Connection*> unsent;
    std::vector<PollEntry> entries;
    for (auto now = start; now < deadline; now = network_.clock().now()) {
        unsent.clear();
        entries.clear();
        for (const auto& node : nodes_) node->append_unsent(unsent);
        if (unsent.empty()) return;
        for (const auto* const connection : unsent) entries.push_back(connection->poll_entry());
        // Not all of them are waited for if there are many.
        network_.wait(entries, now, std::min<Clock::time_point>(deadline, now + 10ms));
        for (auto* const connection : unsent) connection->advance();
    }
}

/// Sends what a release has left unsent, if no other round comes to look at the nodes.
void NodeGroup::send_in_background() noexcept {
    unsent_since_ = network_.clock().now();
    sender_->start();
}

/// It does not wait for the sockets, because a round may take their connections meanwhile. The pauses grow
/// with the time that has passed.
Clock::time_point NodeGroup::send_unsent(Clock::time_point now) {
    const auto since = unsent_since_.load();
    bool unsent = false;
    for (const auto& node : nodes_) unsent = node->send_unsent(now) || unsent;
    if (!unsent || now >= since + options_.node_timeout) return Clock::never();
    return now + std::max<Clock::duration>((now - since) / 4, 1ms);
}

void NodeGroup::ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
    if (requests.empty()) return;
    // Pipelined are extensions alone. A connection remembers one pending SET (rule B5), behind which its
    // release has to go, and a release reaches a node also where an extension would not be sent.
    const auto is_extension = [](const Request& it) { return it.command.verb == Verb::compare_and_expire; };
    if (requests.size() > 1 && !std::ranges::all_of(requests, is_extension)) {
        for (std::size_t i = 0; i < requests.size(); ++i)
            ask(requests.subspan(i, 1), limits, tallies.subspan(i, 1));
        return;
    }
    const auto start = options_.observer ? network_.clock().now() : Clock::time_point{};
    {
        detail::QuorumRound round{requests,       limits,        options_.node_timeout,
                                  options_.round, nodes_.size(), tallies};
        RoundDriver driver{nodes_, servers_, network_, options_.node_timeout, round};
        driver.run();
        if (driver.has_left_release_unsent()) send_in_background();
    }
    if (options_.observer) notify(requests, tallies, network_.clock().now() - start);
}

std::unique_ptr<Waiter> NodeGroup::waiter() {
    return std::make_unique<GroupWaiter>(nodes_, network_, options_.node_timeout);
}

void NodeGroup::notify(std::span<const Request> requests, std::span<const Tally> tallies,
                       std::chrono::nanoseconds took) const {
    for (std::size_t node = 0; node < nodes_.size(); ++node)
        for (const auto& event : nodes_[node]->take_events()) notify(tallies.front()[node].name, event);
    for (std::size_t i = 0; i < requests.size(); ++i)
        options_.observer->round_ended(requests[i].command, tallies[i], took);
}

void NodeGroup::notify(std::string_view node, const NodeEvent& event) const {
    auto& observer = *options_.observer;
    const auto& [cause, detail] = event.failure;
    switch (event.kind) {
        case NodeEvent::Kind::connecting: return observer.connecting(node);
        case NodeEvent::Kind::disconnected: return observer.disconnected(node, cause, detail);
        case NodeEvent::Kind::backing_off: return observer.backing_off(node, cause, detail, event.pause);
    }
}

}  // namespace redlock
