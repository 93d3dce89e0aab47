#include "contest.hpp"

namespace redlock::bench {

Contest::Contest(std::span<Client* const> clients, const Plan& plan) {
    for (auto* const client : clients) {
        (void)client->run({.ops = 1 + plan.batch.ops / 10});  // connects, fills caches
        records_[client->name()].p50.resize(plan.repetitions);
    }
    for (std::size_t repetition = 0; repetition < plan.repetitions; ++repetition)
        for (std::size_t turn = 0; turn < plan.turns; ++turn)
            for (std::size_t i = 0; i < clients.size(); ++i)
                measure(*clients[(turn + i) % clients.size()], plan.batch, repetition);
}

void Contest::measure(Client& client, const Work& work, std::size_t repetition) {
    const auto batch = client.run(work);
    auto& record = records_.at(client.name());
    record.p50[repetition].push_back(median(batch.microseconds));
    record.all.insert(record.all.end(), batch.microseconds.begin(), batch.microseconds.end());
    record.failed += batch.failed;
}

Spread Contest::ratio(const std::string& client, const std::string& baseline) const {
    std::vector<double> repetitions;
    for (std::size_t repetition = 0; repetition < of(client).p50.size(); ++repetition) {
        const auto& ours = of(client).p50[repetition];
        const auto& theirs = of(baseline).p50[repetition];
        std::vector<double> turns;
        for (std::size_t turn = 0; turn < ours.size(); ++turn)
            if (ours[turn] > 0 && theirs[turn] > 0) turns.push_back(ours[turn] / theirs[turn]);
        repetitions.push_back(median(std::move(turns)));
    }
    return spread(repetitions);
}

}  // namespace redlock::bench
