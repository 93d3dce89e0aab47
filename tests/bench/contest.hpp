// Measures clients side by side. A batch of each client is run in turn, many times, so that other activity of
// the machine affects all of them alike. The result is the ratio of two clients within one turn.
#pragma once

#include "client.hpp"
#include "statistics.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace redlock::bench {

struct Plan {
    std::size_t repetitions = 5;
    std::size_t turns = 30;  ///< batches of each client in a repetition
    Work batch{.ops = 200};
};

class Contest {
public:
    /// Runs all batches. The order of the clients changes from turn to turn.
    Contest(std::span<Client* const> clients, const Plan& plan);

    /// Over all ops of a client, in microseconds.
    double p50(const std::string& client) const { return percentile(of(client).all, 0.5); }
    double p99(const std::string& client) const { return percentile(of(client).all, 0.99); }
    std::size_t failed(const std::string& client) const { return of(client).failed; }

    bool has(const std::string& client) const { return records_.contains(client); }

    /// For each repetition, the median over its turns of p50(client) / p50(baseline) in that turn. Zero for a
    /// client without any op.
    Spread ratio(const std::string& client, const std::string& baseline) const;

private:
    struct Record {
        std::vector<double> all{};
        std::vector<std::vector<double>> p50{};  // by repetition, then turn
        std::size_t failed = 0;
    };

    void measure(Client& client, const Work& work, std::size_t repetition);
    const Record& of(const std::string& client) const { return records_.at(client); }

    std::map<std::string, Record> records_{};
};

}  // namespace redlock::bench
