#include "leader_workload.hpp"

#include "at_work.hpp"
#include "candidate.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace redlock::sim {

void LeaderWorkload::run(const std::stop_token& stop) {
    for (int turn = 0; turn < plan_.turns && !stop.stop_requested(); ++turn) {
        const auto options = some_options();
        const auto until_stop = rng_.about(10 * mean_term() / 3);
        if (auto* const loop = client_.loop())
            run_in(*loop, options, until_stop);
        else
            run(options, until_stop);
    }
}

nanoseconds LeaderWorkload::mean_term() const {
    return std::chrono::duration_cast<nanoseconds>(plan_.longest_ttl * plan_.terms);
}

LeaderOptions LeaderWorkload::some_options() {
    const auto ttl = rng_.chance(0.5) ? plan_.longest_ttl : plan_.least_ttl;
    return {.ttl = ttl,
            .margin = std::chrono::duration_cast<milliseconds>(ttl * rng_.between(0.05, 0.45)),
            .retry = {.attempts = plan_.attempts, .delay = plan_.retry_delay},
            .drift_factor = plan_.drift_factor,
            .fair = rng_.chance(plan_.fair),
            .longest_pause = plan_.longest_ttl,
            .watchdog = client_.watchdog(),
            .on_error = [](const auto&) {}};
}

void LeaderWorkload::run(const LeaderOptions& options, nanoseconds until_stop) {
    std::stop_source stop;
    client_.does([&client = client_, stop, until_stop]() mutable {
        client.sleep(until_stop);
        stop.request_stop();
    });
    const auto lead = [&](const Term& term) {
        const AtWork at_work{client_, term, options};
        if (work(term.lost(), options.margin)) throw std::runtime_error("of the work");
    };
    Leader{client_.nodes(), leadership, options, client_.clock(), client_.entropy()}.run(lead,
                                                                                         stop.get_token());
}

/// The fiber does the work of the terms that begin in the loop.
void LeaderWorkload::run_in(SimLoop& loop, const LeaderOptions& options, nanoseconds until_stop) {
    const auto candidate = std::make_shared<Candidate>(client_, loop, options, rng_.child(), plan_.disturbs);
    const Candidate::Run run{candidate};
    client_.does([&client = client_, candidate, until_stop] {
        client.sleep(until_stop);
        candidate->stop();
    });
    while (const auto lost = candidate->wait_for_a_term()) candidate->end_term(work(*lost, options.margin));
}

bool LeaderWorkload::work(const std::stop_token& lost, milliseconds margin) {
    const auto span = rng_.about(mean_term());
    client_.clock().sleep_until(client_.process().now() + span, lost);
    client_.sleep(std::min<nanoseconds>(margin, mean_term()) * rng_.between(0, 90) / 100);
    return rng_.chance(0.1);
}

}  // namespace redlock::sim
