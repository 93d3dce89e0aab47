// The network of a simulated process, below the library's own nodes and connections. Its sockets are channels
// of the simulated network. Its clock and its randomness are those of the process.
#pragma once

#include "channel.hpp"
#include "network.hpp"
#include "process.hpp"
#include "rng.hpp"
#include "sim_node.hpp"

#include "os/network.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::sim {

class ProcessNetwork final : public redlock::Network {
public:
    ProcessNetwork(Process& process, sim::Network& network,
                   const std::vector<std::unique_ptr<SimNode>>& nodes, Rng rng, Channel::Sent sent);

    Clock& clock() noexcept override { return clock_; }
    Entropy& entropy() noexcept override { return entropy_; }
    std::unique_ptr<Socket> connect(const Address& address, milliseconds longest_wait, int& error) override;
    void wait_for_descriptors(std::span<PollEntry> entries, Clock::time_point now, Clock::time_point until,
                              const std::stop_token& stop) override;
    std::unique_ptr<BackgroundTask> make_task(BackgroundTask::Function function) override;
    std::unique_ptr<Wakeup> make_wakeup() override {
        wakes_.emplace_back();
        return std::make_unique<SimWakeup>(*this, wakes_.size() - 1);
    }

    /// Returns the address at which the library finds a node: the number of the node as the path of a unix
    /// socket. Such an address needs no name resolution.
    static std::string path_of(std::size_t node) { return std::to_string(node); }

    /// Returns the port of a server of a Redis Cluster, at 127.0.0.1.
    static std::uint16_t port_of(std::size_t node) { return static_cast<std::uint16_t>(7000 + node); }

    Link& link(std::size_t node) { return links_[node]; }

    /// The connection of each descriptor, or null.
    using Descriptors = std::vector<Channel*>;
    Channel* channel_of(int fd) const { return descriptors_.at(static_cast<std::size_t>(fd)); }

    /// Returns true for any connection of the process, possibly one that was closed a moment ago, that
    /// satisfies `predicate`.
    template <class Predicate>
    bool any_channel(Predicate predicate) const {
        return std::ranges::any_of(channels_, [&](const auto& it) {
            const auto channel = it.lock();
            return channel && predicate(*channel);
        });
    }

    /// Sets the action for a process that repeats a wait that returns at once and brings nothing. It would do
    /// so for ever.
    void on_endless_wait(std::function<void()> action) { on_endless_wait_ = std::move(action); }

    /// Closes all connections when the process has crashed.
    void abandon();

private:
    /// The number of its entry is negative, and not that of a connection without a descriptor.
    struct SimWakeup final : Wakeup {
        SimWakeup(ProcessNetwork& network, std::size_t number) : of(network), number_(number) {}
        PollEntry poll_entry() const noexcept override { return {.fd = -2 - static_cast<int>(number_)}; }
        void wake() noexcept override {
            auto& it = of.wakes_[number_];
            it.woken = true;
            if (it.fiber) of.process_.wake(*it.fiber);
        }
        void reset() noexcept override { of.wakes_[number_].woken = false; }
        ProcessNetwork& of;

    private:
        std::size_t number_;
    };

    /// The state of a SimWakeup.
    struct Wake {
        bool woken = false;
        Task* fiber = nullptr;  // which waits for it
    };

    const Wake* wake_of(const PollEntry& entry) const {
        return entry.fd < -1 ? &wakes_[static_cast<std::size_t>(-2 - entry.fd)] : nullptr;
    }
    bool has_news(const PollEntry& entry) const {
        if (const auto* const wake = wake_of(entry)) return wake->woken;
        return entry.fd >= 0 && channel_of(entry.fd)->has_news();
    }
    void listen(std::span<PollEntry> entries, Task* fiber) {
        for (const auto& entry : entries)
            if (entry.fd < -1)
                wakes_[static_cast<std::size_t>(-2 - entry.fd)].fiber = fiber;
            else if (entry.fd >= 0)
                channel_of(entry.fd)->listen(fiber);
    }
    void sleep_until_news(std::span<PollEntry> entries, Clock::time_point until, const std::stop_token& stop);

    Process& process_;
    sim::Network& network_;
    const std::vector<std::unique_ptr<SimNode>>& nodes_;
    Channel::Sent sent_;
    SimClock clock_;
    SimEntropy entropy_;
    std::deque<Link> links_;
    std::vector<std::weak_ptr<Channel>> channels_{};
    Descriptors descriptors_{};
    std::function<void()> on_endless_wait_{};
    std::deque<Wake> wakes_{};
    int futile_waits_ = 0;  // at the same instant, since the last wait that brought something
    Clock::time_point last_wait_{};
};

}  // namespace redlock::sim
