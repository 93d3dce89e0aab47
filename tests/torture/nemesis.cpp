#include "nemesis.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::torture {

using namespace std::chrono_literals;

Nemesis::Nemesis(support::Cluster& nodes, std::deque<support::TcpProxy>& links, Crew& crew,
                 std::uint64_t seed)
    : nodes_(nodes), links_(links), crew_(crew), randomness_(seed) {}

void Nemesis::strike() {
    undo_what_is_over(now());
    // Mostly a majority is sound, so that locks are held, and lost.
    const auto in_trouble = std::ranges::count_if(misfortunes_, [](auto& it) { return it.node != no_node; });
    const auto dice = below(in_trouble < 2 || below(20) == 0 ? 40 : 12);
    if (dice < 10) return stop_worker();
    if (dice < 12) return kill_worker();
    if (dice < 15) return crash_node();
    if (dice < 20) return crash_majority();
    if (dice < 22) return flush_node();
    if (dice < 27) return freeze_node();
    if (dice < 31) return pause_node();
    if (dice < 36) return cut_link();
    silence_link();
}

void Nemesis::relent() {
    undo_what_is_over(std::numeric_limits<Instant>::max());
    for (auto& link : links_) link.heal();
    for (auto& node : nodes_)
        if (!node.running()) node.restart_empty();
    crew_.thaw_all();
}

/// Without persistence a restart is an empty one.
void Nemesis::crash_node() {
    const auto node = sound_node();
    note("node killed, restarted empty");
    nodes_[node].kill();
    later(node, 300ms, [this, node] { nodes_[node].restart_empty(); });
}

/// Whatever was granted is forgotten by those who granted it.
void Nemesis::crash_majority() {
    note("majority killed, restarted empty");
    std::vector<std::size_t> nodes;
    for (std::size_t node = 0; node < nodes_.size(); ++node)
        if (!troubled(node)) nodes.push_back(node);
    std::ranges::shuffle(nodes, randomness_);
    nodes.resize(std::min(nodes.size(), nodes_.size() / 2 + 1));
    for (const auto node : nodes) nodes_[node].kill();
    std::vector<std::jthread> restarts;  // so that they are back before the holders' ttl is over
    for (const auto node : nodes) restarts.emplace_back([this, node] { nodes_[node].restart_empty(); });
}

void Nemesis::flush_node() {
    note("node flushed");
    (void)nodes_[sound_node()].command({"FLUSHALL"});
}

void Nemesis::freeze_node() {
    const auto node = sound_node();
    note("node frozen");
    nodes_[node].freeze();
    later(node, 1s, [this, node] { nodes_[node].thaw(); });
}

void Nemesis::pause_node() {
    const auto node = sound_node();
    const auto span = std::to_string(50 + below(1000));
    note("node's clients paused");
    (void)nodes_[node].command({"CLIENT", "PAUSE", span, below(2) == 0 ? "WRITE" : "ALL"});
}

void Nemesis::cut_link() {
    const auto link = below(links_.size());
    note("link cut");
    links_[link].reset();
    links_[link].cut_after(0);
    later(link / 2, 500ms, [this, link] { links_[link].heal(); });
}

/// What was sent into the hole arrives afterwards, late.
void Nemesis::silence_link() {
    const auto link = below(links_.size());
    note("link silent");
    links_[link].black_hole();
    later(link / 2, 800ms, [this, link] { links_[link].heal(); });
}

/// Past its ttl, mostly: it wakes up when its lock is another's.
void Nemesis::stop_worker() {
    const auto worker = below(crew_.size());
    note("worker stopped");
    crew_.freeze(worker);
    later(no_node, 4s, [this, worker] { crew_.thaw(worker); });
}

void Nemesis::kill_worker() {
    note("worker killed");
    crew_.replace(below(crew_.size()));
}

void Nemesis::later(std::size_t node, std::chrono::milliseconds at_most, std::function<void()> undo) {
    const auto span = std::chrono::milliseconds{below(static_cast<std::size_t>(at_most.count()))};
    misfortunes_.push_back({now() + std::chrono::nanoseconds{span}.count(), node, std::move(undo)});
}

void Nemesis::undo_what_is_over(Instant now) {
    std::erase_if(misfortunes_, [now](const Misfortune& it) {
        if (it.until > now) return false;
        it.undo();
        return true;
    });
}

bool Nemesis::troubled(std::size_t node) const {
    return std::ranges::any_of(misfortunes_, [node](const Misfortune& it) { return it.node == node; });
}

std::size_t Nemesis::sound_node() {
    auto node = below(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size() && troubled(node); ++i) node = (node + 1) % nodes_.size();
    if (troubled(node)) relent();
    return node;
}

std::size_t Nemesis::below(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>{0, count - 1}(randomness_);
}

}  // namespace redlock::torture
