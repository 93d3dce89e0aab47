#include "fault_injector.hpp"

#include <utility>

namespace redlock::sim {

void FaultInjector::go_on() {
    if (plan_.faults.empty()) return;
    world_.timeline().after(rng_.about(plan_.fault_interval), [this] {
        if (!world_.busy()) return;
        inject(rng_.pick(plan_.faults));
        go_on();
    });
}

void FaultInjector::inject(Fault fault) {
    auto& node = world_.node(rng_.below(world_.size()));
    auto& client = *world_.clients()[rng_.below(world_.clients().size())];
    switch (fault) {
        case Fault::cut: return client.cut_off(rng_.below(world_.size()), some_time());
        case Fault::pause: return client.process().pause_for(some_time());
        case Fault::set_client_clock:
            return client.process().wall_clock_is_set(rng_.chance(0.5) ? some_time() : -some_time());
        case Fault::crash_client: return rng_.chance(0.1) ? client.process().crash() : void();
        case Fault::step_clock: return step_clock();
        case Fault::move_slots: return move_slots(node);
        default: break;
    }
    if (!node.up()) return;
    switch (fault) {
        case Fault::crash_and_keep: return crash(node, Data::kept);
        case Fault::crash_and_forget: return crash(node, Data::nothing);
        case Fault::crash_and_go_back: return crash(node, Data::old);
        case Fault::flush: return node.flush();
        case Fault::evict_marker: return node.evict_marker();
        case Fault::snapshot: return node.take_snapshot();
        case Fault::promote_again: return node.promote_again();
        case Fault::forget_scripts: return node.forget_scripts();
        case Fault::freeze: return node.freeze_for(some_time());
        default: return;
    }
}

/// Moves the slots once. A client that is idle may keep a release which is to be sent behind ASKING. If they
/// were moved back before it makes its next round, the server would not find the key.
void FaultInjector::move_slots(SimNode& node) {
    if (!node.moves_slots() && std::exchange(has_moved_slots_, true)) return;
    node.move_slots(rng_);
}

void FaultInjector::crash(SimNode& node, Data data) {
    node.crash();
    world_.timeline().after(some_time(), [&node, data] { node.restart(data); });
}

/// Sets a clock forward or back. The sum of all steps never exceeds what the drift allows for.
void FaultInjector::step_clock() {
    const auto index = rng_.below(world_.size());
    const auto by = rng_.between(-plan_.steps_in_all, plan_.steps_in_all) / 4;
    const auto size = by < 0ns ? -by : by;
    if (stepped_[index] + size > plan_.steps_in_all) return;
    stepped_[index] += size;
    world_.node(index).step_clock(by);
}

}  // namespace redlock::sim
