// Several clients of one kind that run at the same time.
#pragma once

#include "client.hpp"

#include <chrono>
#include <cstddef>
#include <latch>
#include <memory>
#include <string>
#include <thread>
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
        std::vector<Batch> batches(clients_.size());
        std::latch start{static_cast<std::ptrdiff_t>(clients_.size())};
        {
            std::vector<std::jthread> threads;
            for (std::size_t i = 0; i < clients_.size(); ++i)
                threads.emplace_back([&, i] {
                    start.arrive_and_wait();
                    batches[i] = clients_[i]->run({.span = span});
                });
        }
        std::size_t ops = 0;
        for (const auto& batch : batches) {
            ops += batch.microseconds.size() * ops_at_once_;
            all_.insert(all_.end(), batch.microseconds.begin(), batch.microseconds.end());
        }
        return static_cast<double>(ops) / std::chrono::duration<double>(span).count();
    }

    const std::vector<double>& microseconds() const noexcept { return all_; }

private:
    std::string name_;
    std::size_t ops_at_once_;
    std::vector<std::unique_ptr<Client>> clients_{};
    std::vector<double> all_{};
};

}  // namespace redlock::bench
