#include "leader_workload.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

namespace redlock::sim {
namespace {

/// Reports the work of a leader to the checker, from its begin to its end.
class AtWork {
public:
    AtWork(Client& client, const Term& term, milliseconds margin)
        : client_(client), term_(term), margin_(margin), on_stop_(term.lost(), [this] { told(); }) {
        const Process::NoFaults no_faults{process()};
        client.note([&] { return "leads with token " + std::to_string(term.fencing_token()); });
        (void)checker().acquired({.resources = {"leader"},
                                  .shared = false,
                                  .token = term.fencing_token(),
                                  .completed = process().timeline().now(),
                                  .until = process().when(term.valid_until())});
        checker().work_begins(process());
    }
    ~AtWork() {
        checker().work_ends(process());
        if (process().alive()) client_.note([] { return "ends its work"; });
    }
    AtWork(const AtWork&) = delete;
    AtWork& operator=(const AtWork&) = delete;

private:
    Process& process() { return client_.process(); }
    Checker& checker() { return client_.checker(); }

    void told() {
        if (!process().alive()) return;
        const Process::NoFaults no_faults{process()};
        client_.note([] { return "is told to stop its work"; });
        const auto latest = term_.valid_until() - margin_;
        const auto due = std::min(process().when(latest), process().timeline().now());
        checker().work_is_told(process(), due);
        if (!process().was_paused_since(process().when(latest - 5ms)))
            checker().expect(process().now() <= latest, Rule::stop_in_time, client_.name());
    }

    Client& client_;
    const Term& term_;
    milliseconds margin_;
    std::stop_callback<std::function<void()>> on_stop_;
};

}  // namespace

void LeaderWorkload::run() {
    for (int turn = 0; turn < plan_.turns; ++turn) {
        const auto ttl = rng_.chance(0.5) ? plan_.longest_ttl : plan_.least_ttl;
        const auto margin = std::chrono::duration_cast<milliseconds>(ttl * rng_.between(0.05, 0.45));
        std::stop_source stop;
        client_.does([&client = client_, stop, span = rng_.about(10 * plan_.longest_ttl)]() mutable {
            client.sleep(span);
            stop.request_stop();
        });
        Leader leader{client_.nodes(),
                      "leader",
                      {.ttl = ttl,
                       .margin = margin,
                       .retry = {.attempts = plan_.attempts, .delay = plan_.retry_delay},
                       .drift_factor = plan_.drift_factor,
                       .fair = rng_.chance(plan_.fair),
                       .longest_pause = plan_.longest_ttl,
                       .watchdog = client_.watchdog(),
                       .on_error = [](const auto&) {}},
                      client_.clock(),
                      client_.entropy()};
        leader.run([&](const Term& term) { lead(term, margin); }, stop.get_token());
    }
}

void LeaderWorkload::lead(const Term& term, milliseconds margin) {
    const AtWork at_work{client_, term, margin};
    const auto span = rng_.about(plan_.longest_ttl * 3);
    client_.clock().sleep_until(client_.process().now() + span, term.lost());
    client_.sleep(nanoseconds{margin} * rng_.between(0, 90) / 100);
    if (rng_.chance(0.1)) throw std::runtime_error("of the work");
}

}  // namespace redlock::sim
