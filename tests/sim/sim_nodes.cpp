#include "sim_nodes.hpp"

#include <algorithm>

#include "round/write_choice.hpp"

namespace redlock::sim {
namespace {

std::vector<std::string> names_of(const std::vector<std::unique_ptr<SimNode>>& nodes) {
    std::vector<std::string> names;
    if (nodes.front()->in_cluster()) return {"cluster"};
    for (const auto& node : nodes) names.push_back(node->name());
    return names;
}

std::vector<NodeConfig> configs_of(const std::vector<std::unique_ptr<SimNode>>& nodes,
                                   const NodesOptions& options) {
    const bool is_cluster = nodes.front()->in_cluster();
    std::vector<NodeConfig> configs(is_cluster ? 1 : nodes.size());
    for (std::size_t node = 0; node < configs.size(); ++node) {
        if (is_cluster)
            configs[node].endpoint.seeds = {{.host = "127.0.0.1", .port = ProcessNetwork::port_of(0)}};
        else
            configs[node].endpoint.unix_socket = ProcessNetwork::path_of(node);
        configs[node].node_timeout = options.node_timeout;
        configs[node].quarantine = options.quarantine;
    }
    return for_one_process(std::move(configs));
}

/// Returns true if a round of this verb begins a validity.
bool gives_validity(Verb verb) {
    return acquires(verb) || verb == Verb::compare_and_expire;
}

}  // namespace

SimNodes::SimNodes(Process& process, Network& network, const std::vector<std::unique_ptr<SimNode>>& nodes,
                   Rng rng, NodesOptions options, std::size_t processors, Checker& checker)
    : Nodes(names_of(nodes), options.node_timeout, options.quarantine),
      process_(process),
      checker_(checker),
      nodes_(nodes),
      options_(options),
      configs_(configs_of(nodes, options)),
      network_(process, network, nodes, rng,
               [this](const Channel& channel, const Words& words) { sent(channel, words); }),
      group_(configs_, options, network_, processors),
      shares_connections_(options.share_connections),
      to_be_collected_(detail::max_collecting) {
    network_.on_endless_wait(
        [this] { checker_.violated(Rule::ends_in_time, process_.name() + " waits for ever"); });
}

void SimNodes::ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
    process_.check_alive();
    const auto stopwatch = begins(requests);
    process_.fault_point();
    group_.ask(requests, limits, tallies);
    check_duration(requests, limits, stopwatch);
    ends(requests, tallies);
}

Stopwatch SimNodes::begins(std::span<const Request> requests) {
    for (const auto& [command, to] : requests) {
        if (acquires(command.verb)) acquisitions_[std::string{command.owner}].began = process_.now();
        if (gives_validity(command.verb)) last_asked_[std::string{command.owner}].began = process_.now();
        if (command.verb == Verb::compare_and_delete &&
            !unreached_.try_emplace(std::string{command.owner}).second && shares_connections_)
            repeated_.emplace(command.owner);
        if (!acquires(command.verb)) continue;
        if (const auto it = records_.find(command.resources.data()); it != records_.end())
            owners_.emplace_back(it->second, command.owner);
    }
    return Stopwatch{process_};
}

void SimNodes::ends(std::span<const Request> requests, std::span<const Tally> tallies) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const auto& command = requests[i].command;
        const std::string owner{command.owner};
        const bool acquisition = acquires(command.verb) || command.verb == Verb::raise_count;
        if (command.verb == Verb::compare_and_delete) note_unreached(requests[i], tallies[i]);
        if (acquisition) acquisitions_[owner].ended = process_.now();
        if (acquisition || gives_validity(command.verb)) last_asked_[owner].ended = process_.now();
    }
}

/// Checks the duration of a round: one node_timeout for each node if the nodes are asked in turn, otherwise
/// one for all.
void SimNodes::check_duration(std::span<const Request> requests, const RoundLimits& limits,
                              const Stopwatch& stopwatch) {
    const auto verb = requests.front().command.verb;
    const auto in_turn = acquires(verb) && options_.round == Round::sequential ? size() : 1;
    // The extensions of one server of a Cluster are a round.
    const auto rounds = verb == Verb::compare_and_expire && !has_cluster() ? 1 : requests.size();
    auto longest = nanoseconds{node_timeout()} * static_cast<int>(in_turn * rounds);
    if (limits.deadline != Clock::never())
        longest = std::min(longest, std::max<nanoseconds>(limits.deadline - stopwatch.began(), 0ns));
    longest += to_be_collected_;
    if (!stopwatch.within(longest))
        checker_.violated(Rule::ends_in_time, process_.name() + " in a round for " +
                                                  std::to_string(stopwatch.elapsed() / 1us) +
                                                  " us, and not for " + std::to_string(longest / 1us));
}

/// Records the nodes that a release did not reach. A round does not wait for a node that is not trusted.
/// While the next connection to such a node is still being made, the release has no connection to use. A
/// round also waits for no connection longer than node_timeout. If another thread has to send the release,
/// and stalls, it sends the release later.
void SimNodes::note_unreached(const Request& release, const Tally& tally) {
    auto& unreached = unreached_[std::string{release.command.owner}];
    for (std::size_t node = 0; node < size(); ++node)
        if (release.to[node])
            unreached[node] =
                tally[node].detail == leading_thread_gets_no_processor ||
                (!tally[node].sent && (tally[node].cause == Errc::timed_out || has_new_connection(node)));
}

bool SimNodes::has_new_connection(std::size_t node) const {
    return network_.any_channel([&](const Channel& channel) {
        return (has_cluster() || &channel.node() == nodes_[node].get()) && channel.is_new();
    });
}

// ---- Event loops

/// The rounds of an event loop, which are recorded.
class SimNodes::LoopRounds final : public loop::Rounds {
public:
    LoopRounds(SimNodes& nodes, std::shared_ptr<Rounds> rounds) : nodes_(nodes), rounds_(std::move(rounds)) {}

    std::unique_ptr<loop::RoundInSteps> begin(loop::Task& task, std::span<const Request> requests,
                                              const RoundLimits& limits, std::span<Tally> tallies) override {
        const auto stopwatch = nodes_.begins(requests);
        return std::make_unique<Round>(nodes_, requests, limits, tallies, stopwatch,
                                       rounds_->begin(task, requests, limits, tallies));
    }
    std::unique_ptr<loop::WaiterInSteps> waiter() override { return rounds_->waiter(); }
    void on_ready(int fd) override { rounds_->on_ready(fd); }
    void detach() noexcept override { rounds_->detach(); }
    void unused() noexcept override { rounds_->unused(); }
    bool nodes_are_gone() const noexcept override { return rounds_->nodes_are_gone(); }

private:
    class Round final : public loop::RoundInSteps {
    public:
        Round(SimNodes& nodes, std::span<const Request> requests, const RoundLimits& limits,
              std::span<Tally> tallies, Stopwatch stopwatch, std::unique_ptr<RoundInSteps> round)
            : nodes_(nodes),
              requests_(requests),
              limits_(limits),
              tallies_(tallies),
              stopwatch_(stopwatch),
              round_(std::move(round)) {}
        ~Round() override {
            round_.reset();
            nodes_.ends(requests_, tallies_);
        }

        std::optional<Clock::time_point> advance() override {
            const auto until = round_->advance();
            if (!until) nodes_.check_duration(requests_, limits_, stopwatch_);
            return until;
        }

    private:
        SimNodes& nodes_;
        const std::span<const Request> requests_;
        const RoundLimits& limits_;
        const std::span<Tally> tallies_;
        const Stopwatch stopwatch_;
        std::unique_ptr<RoundInSteps> round_;
    };

    SimNodes& nodes_;
    const std::shared_ptr<Rounds> rounds_;
};

std::shared_ptr<loop::Rounds> SimNodes::rounds_in(EventLoop& loop,
                                                  const std::shared_ptr<loop::Scheduler>& scheduler) {
    shares_connections_ = true;
    const std::shared_ptr<redlock::Network> network{&network_, [](auto) {}};
    return std::make_shared<LoopRounds>(
        *this, std::make_shared<loop::LoopGroup>(scheduler, loop, configs_, options_, network, former_));
}

void SimNodes::close() noexcept {
    former_->close(group_);
}

NodeSet SimNodes::unreached(std::string_view owner) const {
    const auto it = unreached_.find(owner);
    return it == unreached_.end() ? NodeSet{} : it->second;
}

SimNodes::Asked SimNodes::find(const AskedByOwner& asked, std::string_view owner) {
    const auto it = asked.find(owner);
    return it == asked.end() ? Asked{} : it->second;
}

std::vector<std::string> SimNodes::owners() const {
    std::vector<std::string> result;
    for (const auto& [owner, asked] : acquisitions_) result.push_back(owner);
    return result;
}

std::size_t SimNodes::record_owners(Resources resources) {
    return records_[resources.data()] = ++last_record_;
}

std::vector<std::string> SimNodes::take_owners(std::size_t record) {
    std::erase_if(records_, [&](const auto& entry) { return entry.second == record; });
    std::vector<std::string> mine;
    std::erase_if(owners_, [&](auto& entry) {
        if (entry.first != record) return false;
        mine.push_back(std::move(entry.second));
        return true;
    });
    return mine;
}

void SimNodes::sent(const Channel& channel, const Words& words) {
    const auto owner = owner_of(words);
    if (owner.empty()) return;
    const auto is_overtaken = [&](const Channel& other) {
        const bool same_node = has_cluster() || &other.node() == &channel.node();
        return &other != &channel && same_node && other.is_overtaken_by(words);
    };
    // The first release may wait in the buffer of the connection of the SET, and is written even if the loop
    // is shut down. The second one then needs no order, nor does the deletion of the holder description.
    const bool needs_none =
        repeated_.contains(owner) || (shares_connections_ && describes(words) && releasing(owner));
    if (!needs_none && network_.any_channel(is_overtaken))
        checker_.violated(Rule::order_is_kept, process_.name() + ": " + text(words) + " " +
                                                   process_.log().nickname(owner) + " to " +
                                                   channel.node().name());
    if (extends(words) && released_.contains(owner))
        checker_.violated(Rule::over_with_release, process_.name() + ": " + text(words));
}

}  // namespace redlock::sim
