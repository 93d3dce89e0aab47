#include "suspension_workload.hpp"

#include "checked_semaphore.hpp"
#include "leader_workload.hpp"

#include <array>
#include <string>
#include <vector>

namespace redlock::sim {
namespace {

using Operation = SuspensionCase::Operation;
using Conditions = SuspensionCase::Conditions;

/// An operation that waits for others has more suspensions, which are alike.
constexpr std::size_t most_suspensions = 80;

/// The operation may end early because it has met nobody. So it must do that several times in a row.
constexpr int times_ended = 3;

LockOptions some_options(Operation operation, Client& client, const Plan& plan, Rng& rng) {
    const bool any = operation == Operation::extend || operation == Operation::release;
    LockOptions options{.ttl = plan.longest_ttl,
                        .retry = {.attempts = plan.attempts, .delay = plan.retry_delay},
                        .drift_factor = plan.drift_factor,
                        .fencing = plan.fencing};
    options.shared = operation == Operation::acquire_as_reader || (any && rng.chance(0.2));
    options.fair = operation == Operation::acquire_fair || (any && !options.shared && rng.chance(0.3));
    if (plan.world.cluster) options.fair = false;
    if (rng.chance(0.3)) options.watchdog = client.watchdog();
    if (rng.chance(0.3)) options.holder = client.name();
    return options;
}

}  // namespace

SuspensionCase SuspensionCase::of(std::uint64_t number) {
    return {.operation = static_cast<Operation>(number % operations),
            .disturbance = static_cast<SimLoop::Disturbance>(number / operations % disturbances),
            .conditions = static_cast<Conditions>(number / (operations * disturbances) % conditions_count)};
}

SuspensionCase SuspensionCase::in_cluster(std::uint64_t number) {
    constexpr std::array possible{
        Operation::acquire, Operation::acquire_as_reader, Operation::try_acquire, Operation::acquire_several,
        Operation::extend,  Operation::release,           Operation::semaphore};
    static_assert(possible.size() * conditions_count == count_in_cluster);
    return {.operation = possible[number % possible.size()],
            .disturbance = SimLoop::Disturbance::move_slots,
            .conditions = static_cast<Conditions>(number / possible.size() % conditions_count)};
}

void prepare(Plan& plan, const SuspensionCase& of) {
    plan.clients = 3;
    plan.threads = 1;
    plan.turns = 1'000'000;  // until the first client has ended
    plan.resources = 2;
    plan.calm = of.conditions == Conditions::calm;
    plan.heals = of.conditions != Conditions::hanging;
    plan.world.conditions = {.mean = 1ms, .parts = plan.calm ? 0 : 0.1};
    // Keys live so long that one that is left is found.
    plan.least_ttl = plan.longest_ttl = 10min;
    plan.rests = plan.works = 0.0001;
    plan.terms = 0.0003;
    plan.lapses = plan.last_moment = 0;
    plan.attempts = 4;
    plan.retry_delay = 20ms;
    plan.hazards = {};
    if (of.conditions == Conditions::breaking) plan.world.conditions.breaks = 0.01;
    if (of.conditions == Conditions::hanging) {
        plan.world.node_timeout = 20ms;
        plan.world.conditions.slow_share = 0.05;
        plan.world.conditions.slow = 60ms;
        plan.faults = {Fault::freeze, Fault::cut, Fault::forget_scripts};
        // Tokens grow across restarts only with a quarantine, and every leader has a token.
        if (of.operation != Operation::acquire_with_fencing && of.operation != Operation::leader)
            plan.faults.push_back(Fault::crash_and_keep);
        plan.fault_interval = 50ms;
        plan.longest_fault = 200ms;
        plan.least_ttl = plan.longest_ttl = 1s;
        plan.rests = plan.works = 0.1;
        plan.terms = 0.2;
    }
    switch (of.operation) {
        case Operation::acquire:
        case Operation::acquire_as_reader: plan.shared = 0.5; break;
        case Operation::acquire_fair: plan.fair = 0.7; break;
        case Operation::acquire_with_fencing: plan.fencing = true; break;
        case Operation::acquire_with_quarantine:
            plan.least_ttl = plan.longest_ttl = 2s;
            plan.rests = plan.works = 0.03;
            plan.world.quarantine = plan.longest_ttl;
            plan.world.trusted = true;
            plan.world.skew = 0ns;
            if (of.conditions == Conditions::hanging)
                plan.faults.insert(plan.faults.end(),
                                   {Fault::crash_and_forget, Fault::flush, Fault::evict_marker});
            break;
        case Operation::semaphore: plan.slots = 2; break;
        case Operation::leader: plan.leading = true; break;
        default: break;
    }
}

SuspensionWorkload::SuspensionWorkload(Client& client, const Plan& plan, Rng rng)
    : client_(client),
      loop_(*client.loop()),
      plan_(plan),
      case_(plan.world.cluster ? SuspensionCase::in_cluster(plan.number) : SuspensionCase::of(plan.number)),
      rng_(rng),
      options_(some_options(case_.operation, client, plan, rng_)) {}

void SuspensionWorkload::run() {
    int ended = 0;
    for (std::size_t suspension = 1; suspension <= most_suspensions && ended < times_ended; ++suspension) {
        const bool disturbed = case_.operation == Operation::leader      ? disturb_leader_at(suspension)
                               : case_.operation == Operation::semaphore ? disturb_semaphore_at(suspension)
                                                                         : disturb_at(suspension);
        ended = disturbed ? 0 : ended + 1;
        client_.sleep(rng_.about(plan_.retry_delay));
    }
}

bool SuspensionWorkload::disturb_at(std::size_t suspension) {
    std::vector<std::string> resources{resource_name(plan_, 1)};
    if (case_.operation == Operation::acquire_several) resources.push_back(resource_name(plan_, 2));
    CheckedLock lock{client_, std::move(resources), options_};
    const bool holds = case_.operation == Operation::extend || case_.operation == Operation::release;
    for (int i = 0; holds && i < 10 && !lock.valid(); ++i) (void)lock.acquire();
    loop_.disturb_next(case_.disturbance, suspension);
    switch (case_.operation) {
        case Operation::extend: (void)lock.extend(); break;
        case Operation::release: (void)lock.release(); break;
        case Operation::try_acquire: (void)lock.try_acquire(); break;
        default: acquire(lock);
    }
    const bool disturbed = loop_.has_disturbed();
    if (lock.valid()) client_.sleep(rng_.about(5ms));
    if (rng_.chance(0.5)) (void)lock.release();
    return disturbed;
}

void SuspensionWorkload::acquire(CheckedLock& lock) {
    if (rng_.chance(0.5))
        (void)lock.acquire();
    else
        (void)lock.acquire_for(200ms);
}

bool SuspensionWorkload::disturb_semaphore_at(std::size_t suspension) {
    CheckedSemaphore semaphore{client_, "s", static_cast<std::size_t>(plan_.slots), options_};
    loop_.disturb_next(case_.disturbance, suspension);
    if (semaphore->acquire()) client_.checker().slot_acquired();
    const bool disturbed = loop_.has_disturbed();
    if (rng_.chance(0.5)) (void)semaphore->release();
    return disturbed;
}

bool SuspensionWorkload::disturb_leader_at(std::size_t suspension) {
    LeaderWorkload leader{client_, plan_, rng_.child()};
    loop_.disturb_next(case_.disturbance, suspension);
    leader.run_in(loop_, leader.some_options(), rng_.between(50ms, 500ms));
    return loop_.has_disturbed();
}

}  // namespace redlock::sim
