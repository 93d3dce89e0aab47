// Several clients of one kind that run at the same time.
#pragma once

#include "client.hpp"

#include "support/in_threads.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {

/// A number of clients, each in its own thread.
class Team {
public:
    /// A pipelined client makes several ops at a time, and measures all of them as one. Their number is
    /// `ops_at_once`.
    explicit Team(std::string name, std::size_t ops_at_once = 1)
        : name_(std::move(name)), ops_at_once_(ops_at_once) {}
    void add(std::unique_ptr<Client> client) { clients_.push_back(std::move(client)); }
    const std::string& name() const noexcept { return name_; }

    /// Runs all of them for a while, so that they connect and fill caches, without recording the latencies.
    void warm_up(std::chrono::milliseconds span) {
        (void)throughput(span);
        all_.clear();
    }

    /// Runs all of them for a while. Returns their ops for each second.
    double throughput(std::chrono::milliseconds span) {
        std::size_t ops = 0;
        for (const auto& batch : run({.span = span})) {
            ops += batch.microseconds.size() * ops_at_once_;
            all_.insert(all_.end(), batch.microseconds.begin(), batch.microseconds.end());
        }
        return static_cast<double>(ops) / std::chrono::duration<double>(span).count();
    }

    /// Returns true if ops can arrive at a fixed rate, see Work.
    bool heeds_arrivals() const {
        return ops_at_once_ == 1 && std::ranges::all_of(clients_, &Client::heeds_arrivals);
    }

    /// Returns true if all of them are in this process.
    bool is_local() const { return std::ranges::all_of(clients_, &Client::is_local); }

    /// Runs all of them for a while. The ops of all clients together arrive at this rate. Returns the time of
    /// each op in microseconds.
    std::vector<double> times_at(double ops_per_s, std::chrono::milliseconds span) {
        const auto interval = std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::duration<double>(1 / ops_per_s));
        std::vector<double> result;
        for (const auto& batch : run({.span = span, .interval = interval}))
            result.insert(result.end(), batch.microseconds.begin(), batch.microseconds.end());
        return result;
    }

    const std::vector<double>& microseconds() const noexcept { return all_; }

private:
    /// Runs all of them. The arrivals of Work are divided among them in turn.
    std::vector<Batch> run(const Work& all) {
        std::vector<Batch> batches(clients_.size());
        support::in_threads(clients_.size(), [&](std::size_t i) {
            auto work = all;
            work.interval *= static_cast<std::int64_t>(clients_.size());
            work.first = all.interval * static_cast<std::int64_t>(i);
            batches[i] = clients_[i]->run(work);
        });
        return batches;
    }

    std::string name_;
    std::size_t ops_at_once_;
    std::vector<std::unique_ptr<Client>> clients_{};
    std::vector<double> all_{};
};

}  // namespace redlock::bench
