#include "nemesis.hpp"

#include "support/wait_until.hpp"

namespace redlock::exclusion {

void Nemesis::strike() {
    switch (below(5)) {
        case 0: return crash_a_node();
        case 1: return crash_a_node_and_freeze_another();
        case 2: return freeze_a_node();
        case 3: return blink_with_all_nodes();
        default: return crash_a_worker();
    }
}

void Nemesis::crash_a_node() {
    const auto node = below(nodes_.size());
    note("kill node", node);
    nodes_[node].kill();
    await_holds(10);
    note("restart node", node);
    nodes_[node].restart();
}

/// No majority of three is left, so nobody can acquire; who held goes on holding.
void Nemesis::crash_a_node_and_freeze_another() {
    const auto crashed = below(nodes_.size());
    const auto frozen = (crashed + 1 + below(nodes_.size() - 1)) % nodes_.size();
    note("kill node", crashed);
    nodes_[crashed].kill();
    note("freeze node", frozen);
    nodes_[frozen].freeze();
    await_attempts(static_cast<std::int64_t>(team_.size()));
    note("restart node", crashed);
    nodes_[crashed].restart();
    await_holds(5);
    note("thaw node", frozen);
    nodes_[frozen].thaw();
}

void Nemesis::freeze_a_node() {
    const auto node = below(nodes_.size());
    note("freeze node", node);
    nodes_[node].freeze();
    await_holds(10);
    note("thaw node", node);
    nodes_[node].thaw();
}

/// Short enough for answers that are late and for answers that are just in time.
void Nemesis::blink_with_all_nodes() {
    for (int times = 0; times < 10; ++times) {
        const auto node = below(nodes_.size());
        note("blink node", node);
        nodes_[node].freeze();
        await_attempts(static_cast<std::int64_t>(below(3)));
        nodes_[node].thaw();
    }
    await_holds(1);
}

void Nemesis::crash_a_worker() {
    const auto worker = below(team_.size());
    note("kill worker", worker);
    team_.replace(worker);
    await_holds(5);
}

void Nemesis::await_holds(std::int64_t more) {
    const auto enough = team_.holds() + more;
    if (support::wait_until([&] { return team_.holds() >= enough; }, std::chrono::seconds{30})) return;
    stalled_ = true;
    deeds_ += "  ... where nobody got the lock any more\n";
}

void Nemesis::await_attempts(std::int64_t more) {
    const auto enough = team_.attempts() + more;
    if (support::wait_until([&] { return team_.attempts() >= enough; }, std::chrono::seconds{30})) return;
    stalled_ = true;
    deeds_ += "  ... where nobody even failed to get the lock any more\n";
}

void Nemesis::note(const std::string& deed, std::size_t whom) {
    deeds_ += std::to_string(monotonic_now()) + " ns: " + deed + ' ' + std::to_string(whom) + '\n';
}

std::size_t Nemesis::below(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>{0, count - 1}(randomness_);
}

}  // namespace redlock::exclusion
