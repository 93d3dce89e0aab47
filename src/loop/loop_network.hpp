// The Network of an event loop: sockets that the loop watches.
#pragma once

#include "../os/network.hpp"
#include "watches.hpp"

#include <memory>
#include <utility>

namespace redlock::loop {

class LoopNetwork final : public Network {
public:
    /// Opens its sockets through `system`. That is the network of the RedisNodes, so that a child of fork()
    /// can close its copies.
    LoopNetwork(EventLoop& loop, std::shared_ptr<Network> system)
        : system_(std::move(system)), watches_(loop) {}

    Clock& clock() noexcept override { return system_->clock(); }
    Entropy& entropy() noexcept override { return system_->entropy(); }
    std::unique_ptr<Socket> connect(const Address& address, std::chrono::milliseconds longest_wait,
                                    int& error) override {
        return system_->connect(address, longest_wait, error);
    }
    void forget(int fd) noexcept override { watches_.forget(fd); }
    /// Blocks if `until` is later than `now`. Such calls are made only at the shutdown of a loop, and when
    /// nodes are closed.
    void wait_for_descriptors(std::span<PollEntry> entries, Clock::time_point now, Clock::time_point until,
                              const std::stop_token& stop) override {
        system_->wait(entries, now, until, stop);
    }

    Watches& watches() noexcept { return watches_; }

private:
    const std::shared_ptr<Network> system_;
    Watches watches_;
};

}  // namespace redlock::loop
