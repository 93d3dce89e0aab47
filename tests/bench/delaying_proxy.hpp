// A network with a round-trip time, on one machine and without netem: a TCP proxy that holds every byte back
// for so long in each direction. Only bytes are late: a connection is made, and refused, at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace redlock::bench {

/// One thread serves all nodes. It spins while bytes are on their way and shortly after, since what sleeps is
/// woken late: on a machine with one core it would be in the way of those it serves.
class DelayingProxy {
public:
    /// Listens on a port of its own for each of the ports of 127.0.0.1. Throws std::system_error.
    DelayingProxy(const std::vector<std::uint16_t>& upstream_ports, std::chrono::nanoseconds each_way);
    ~DelayingProxy();
    DelayingProxy(const DelayingProxy&) = delete;
    DelayingProxy& operator=(const DelayingProxy&) = delete;

    /// In the order of the upstream ports.
    std::vector<std::string> uris() const;

private:
    class Loop;
    std::vector<std::uint16_t> ports_{};
    std::unique_ptr<Loop> loop_;
    std::atomic<bool> stop_{false};
    std::thread thread_{};
};

}  // namespace redlock::bench
