#include "at_work.hpp"

#include <algorithm>
#include <utility>

namespace redlock::sim {

AtWork::AtWork(Client& client, Term term, const LeaderOptions& options)
    : client_(client),
      checker_(client.checker()),
      term_(std::move(term)),
      margin_(options.margin),
      longest_timer_(client.uses_loops() ? options.ttl : 5ms),
      owner_(checker_.owner_of(leadership)) {
    auto& process = client.process();
    const Process::NoFaults no_faults{process};
    client.note([&] { return "leads with token " + std::to_string(term_.fencing_token()); });
    (void)checker_.acquired({.resources = {leadership},
                             .shared = false,
                             .token = term_.fencing_token(),
                             .completed = process.timeline().now(),
                             .until = process.when(term_.valid_until())});
    checker_.work_begins(*this);
    on_stop_.emplace(term_.lost(), [this] { told(); });
}

AtWork::~AtWork() {
    checker_.work_ends(*this);
    if (client_.process().alive()) client_.note([] { return "ends its work"; });
}

bool AtWork::check_valid() {
    if (!client_.process().alive()) return false;
    const Process::NoFaults no_faults{client_.process()};
    return term_.remaining() > 0ns;
}

void AtWork::told() {
    auto& process = client_.process();
    if (!process.alive()) return;
    const Process::NoFaults no_faults{process};
    client_.note([] { return "is told to stop its work"; });
    const auto latest = term_.valid_until() - margin_;
    checker_.work_is_told(*this, std::min(process.when(latest), process.timeline().now()));
    if (!process.was_paused_since(process.when(latest - longest_timer_)))
        checker_.expect(process.now() <= latest, Rule::stop_in_time, client_.name());
}

}  // namespace redlock::sim
