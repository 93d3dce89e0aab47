#include "nemesis.hpp"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::torture {

using namespace std::chrono_literals;

Nemesis::Nemesis(support::Cluster& nodes, std::deque<support::TcpProxy>& links, WorkerPool& workers,
                 Restart restart, std::uint64_t seed)
    : nodes_(nodes), links_(links), workers_(workers), restart_(restart), random_(seed) {}

void Nemesis::inject_fault() {
    heal_overdue(now());
    // Usually a majority is healthy, so that locks are acquired and lost.
    const auto faulty = std::ranges::count_if(faults_, [](auto& it) { return it.node != no_node; });
    const bool another = static_cast<std::size_t>(faulty) < nodes_.size() / 2 || below(20) == 0;
    auto choice = below(another && nodes_.size() > 0 ? 40 : 12);
    if (restart_ == Restart::never && choice >= 12 && choice < 22) choice += 10;
    if (choice < 10) return stop_worker();
    if (choice < 12) return kill_worker();
    if (choice < 15) return kill_node();
    if (choice < 20) return kill_majority();
    if (choice < 22) return restart_ == Restart::empty ? flush_node() : kill_node();
    if (choice < 27) return freeze_node();
    if (choice < 31) return pause_clients();
    if (choice < 36) return cut_link();
    silence_link();
}

void Nemesis::heal_all() {
    heal_overdue(std::numeric_limits<Instant>::max());
    for (auto& link : links_) link.heal();
    for (std::size_t node = 0; node < nodes_.size(); ++node)
        if (!nodes_[node].running()) restart(node);
    workers_.thaw_all();
}

void Nemesis::restart(std::size_t node) {
    if (restart_ == Restart::empty) return nodes_[node].restart_empty();
    nodes_[node].restart();
}

void Nemesis::kill_node() {
    const auto node = healthy_node();
    count("node killed and restarted");
    nodes_[node].kill();
    heal_later(node, 300ms, [this, node] { restart(node); });
}

/// If the nodes restart empty, a majority of the nodes that granted a lock has forgotten it.
void Nemesis::kill_majority() {
    count("majority killed and restarted");
    std::vector<std::size_t> nodes;
    for (std::size_t node = 0; node < nodes_.size(); ++node)
        if (!has_fault(node)) nodes.push_back(node);
    std::ranges::shuffle(nodes, random_);
    nodes.resize(std::min(nodes.size(), nodes_.size() / 2 + 1));
    for (const auto node : nodes) nodes_[node].kill();
    // in parallel, so that they are back before the holders' ttl has passed
    std::vector<std::jthread> restarts;
    for (const auto node : nodes) restarts.emplace_back([this, node] { restart(node); });
}

void Nemesis::flush_node() {
    count("node flushed");
    (void)nodes_[healthy_node()].command({"FLUSHALL"});
}

void Nemesis::freeze_node() {
    const auto node = healthy_node();
    count("node frozen");
    nodes_[node].freeze();
    heal_later(node, 1s, [this, node] { nodes_[node].thaw(); });
}

void Nemesis::pause_clients() {
    const auto node = healthy_node();
    const auto span = std::to_string(50 + below(1000));
    count("clients of a node paused");
    (void)nodes_[node].command({"CLIENT", "PAUSE", span, below(2) == 0 ? "WRITE" : "ALL"});
}

void Nemesis::cut_link() {
    const auto link = below(links_.size());
    count("link cut");
    links_[link].reset();
    links_[link].cut_after(0);
    heal_later(link / 2, 500ms, [this, link] { links_[link].heal(); });
}

/// What was sent meanwhile arrives later.
void Nemesis::silence_link() {
    const auto link = below(links_.size());
    count("link silent");
    links_[link].black_hole();
    heal_later(link / 2, 800ms, [this, link] { links_[link].heal(); });
}

/// The worker usually stops for longer than its ttl. Another worker holds its resource when it continues.
void Nemesis::stop_worker() {
    const auto worker = below(workers_.size());
    count("worker stopped");
    workers_.freeze(worker);
    heal_later(no_node, 4s, [this, worker] { workers_.thaw(worker); });
}

void Nemesis::kill_worker() {
    count("worker killed");
    workers_.replace(below(workers_.size()));
}

void Nemesis::heal_later(std::size_t node, std::chrono::milliseconds at_most, std::function<void()> heal) {
    const auto span = std::chrono::milliseconds{below(static_cast<std::size_t>(at_most.count()))};
    faults_.push_back({now() + std::chrono::nanoseconds{span}.count(), node, std::move(heal)});
}

void Nemesis::heal_overdue(Instant now) {
    std::erase_if(faults_, [now](const Fault& it) {
        if (it.until > now) return false;
        it.heal();
        return true;
    });
}

bool Nemesis::has_fault(std::size_t node) const {
    return std::ranges::any_of(faults_, [node](const Fault& it) { return it.node == node; });
}

std::size_t Nemesis::healthy_node() {
    auto node = below(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size() && has_fault(node); ++i) node = (node + 1) % nodes_.size();
    if (has_fault(node)) heal_all();
    return node;
}

std::size_t Nemesis::below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>{0, end - 1}(random_);
}

}  // namespace redlock::torture
