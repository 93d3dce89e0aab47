#include "node_group.hpp"

#include "group_waiter.hpp"

#include <algorithm>
#include <array>

namespace redlock {

using namespace std::chrono_literals;

NodeGroup::NodeGroup(const std::vector<NodeConfig>& configs, const NodesOptions& options, Network& network,
                     Writes writes)
    : options_(options),
      network_(network),
      table_(configs, network_,
             {.max_idle = options_.max_idle,
              .observed = options_.observer != nullptr,
              .collects = writes == Writes::collected}) {}

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
                for (const auto& node : group->table_.all()) node->server().kept().permit_attempt();
            bool done = send_the_rest(groups, deadline, true);
            for (const auto* const group : groups)
                for (const auto& node : group->table_.all()) done = done && node->server().kept().none();
            return done;
        };
        // The first attempt may find that a server is busy.
        const auto half = start + first.options_.node_timeout / 2;
        if (attempt(half)) return;
        first.network_.wait({}, first.network_.clock().now(), half);
        (void)attempt(start + first.options_.node_timeout);
    } catch (...) {  // NOLINT(bugprone-empty-catch): there is no memory; the keys will expire
    }
}

void NodeGroup::give_up() noexcept {
    closed_ = true;
    for (const auto& node : table_.all()) node->close_connections(network_.clock().now());
}

bool NodeGroup::send_the_rest(std::span<NodeGroup* const> groups, Clock::time_point deadline, bool repeats) {
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
        if (repeats) groups.front()->table_.find_debtors();
        for (const auto* const group : groups)
            for (const auto& node : group->table_.all()) node->append_unfinished(owing, repeats);
        if (owing.empty()) return true;
        for (const auto* const connection : owing) entries.push_back(connection->poll_entry());
        // A kept release may become due meanwhile, so the loop must not wait for long.
        network.wait(entries, now, std::min<Clock::time_point>(deadline, now + 10ms));
        for (auto* const connection : owing) connection->advance();
    }
    return false;
}

// ---- Rounds

Clock::time_point NodeGroup::write_collected(Clock::time_point now) {
    auto next = Clock::never();
    // The first node is the last, as in QuorumRound::next_to_ask().
    for (auto i = table_.all().size(); i > 0; --i)
        next = std::min(next, table_.all()[i - 1]->write_collected(now));
    return next;
}

/// The order of the nodes does not matter here. A release that wakes a waiter is awaited, so
/// write_collected() has written it.
Rest NodeGroup::write_all(Clock::time_point now) {
    auto rest = Rest::nothing;
    for (std::size_t i = 0; i < table_.all().size(); ++i)
        rest = std::max(rest, table_.all()[i]->write_all(now));
    return rest;
}

void NodeGroup::give_up_unwritten(Clock::time_point now) {
    for (std::size_t i = 0; i < table_.all().size(); ++i) table_.all()[i]->give_up_unwritten(now);
}

bool NodeGroup::check_silence(Clock::time_point now) {
    bool any = false;
    for (std::size_t i = 0; i < table_.all().size(); ++i) any = table_.all()[i]->check_silence(now) || any;
    return any;
}

void NodeGroup::add_late_replies(detail::LateReplies& late) const {
    for (const auto& node : table_.all()) node->add_late_replies(late);
}

void NodeGroup::append_poll_entries(std::vector<PollEntry>& entries, Node::Polled polled) const {
    for (const auto& node : table_.all()) node->append_poll_entries(entries, polled);
}

void NodeGroup::take_ready(std::span<const PollEntry> entries, Clock::time_point now) {
    for (const auto& entry : entries)
        if (entry.ready) table_.all()[entry.node]->take_ready(entry, now);
}

std::unique_ptr<Waiter> NodeGroup::waiter() {
    return std::make_unique<GroupWaiter>(nodes(), network_, options_.node_timeout);
}

void NodeGroup::notify(std::span<const Request> requests, std::span<const Tally> tallies,
                       std::chrono::nanoseconds took) const {
    if (!options_.observer) return;
    // The thread need not lead, so it must not use the list of all Node objects.
    for (const auto* const node : table_.nodes()) {
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
