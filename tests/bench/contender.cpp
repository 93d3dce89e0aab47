// One of many processes that want one resource: waits for it, holds it for 1 ms, lets go, wants it again.
//
//     redlock_bench_contender CLIENT RETRY-DELAY-MS START-NS MILLISECONDS
//     412 acquisitions, longest wait 93.5 ms
//
// START-NS is an instant of CLOCK_MONOTONIC, which all processes share. REDLOCK_NODES names the nodes.
#include "raw_client.hpp"
#include "redis_plus_plus_client.hpp"

#include "support/redlock_nodes.hpp"

#include <sys/prctl.h>
#include <redlock/redlock.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace redlock::bench {
namespace {

using Monotonic = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto* resource = "bench:wanted";

class Contender {
public:
    virtual ~Contender() = default;
    virtual bool acquire_until(Monotonic::time_point end) = 0;
    virtual void release() = 0;
};

class OurContender final : public Contender {
public:
    OurContender(const std::vector<std::string>& uris, Round round, std::chrono::milliseconds delay)
        : nodes_(uris, {.round = round}), lock_(nodes_, resource, {.retry = {.delay = delay}}) {}
    bool acquire_until(Monotonic::time_point end) override {
        return static_cast<bool>(lock_.acquire_until(end));
    }
    void release() override { (void)lock_.release(); }

private:
    RedisNodes nodes_;
    Lock lock_;
};

/// Tries, and pauses as our lock does, with a client that can only try.
class PatientContender final : public Contender {
public:
    PatientContender(std::unique_ptr<LocalClient> client, std::chrono::milliseconds delay)
        : client_(std::move(client)), pause_(delay.count() * 500, delay.count() * 1000) {}

    bool acquire_until(Monotonic::time_point end) override {
        while (!client_->acquire()) {
            client_->release();
            const auto pause = std::chrono::microseconds{pause_(random_)};
            if (Monotonic::now() + pause >= end) return false;
            std::this_thread::sleep_for(pause);
        }
        return true;
    }
    void release() override { client_->release(); }

private:
    std::unique_ptr<LocalClient> client_;
    std::mt19937 random_{std::random_device{}()};
    std::uniform_int_distribution<long> pause_;
};

std::unique_ptr<Contender> contender(const std::string& client, std::chrono::milliseconds delay) {
    if (client == "redlock sequential")
        return std::make_unique<OurContender>(support::redlock_nodes(), Round::sequential, delay);
    if (client == "redlock all-at-once")
        return std::make_unique<OurContender>(support::redlock_nodes(), Round::all_at_once, delay);
    if (client == "raw multiplexed")
        return std::make_unique<PatientContender>(
            std::make_unique<RawClient>(support::redlock_nodes(), RawClient::Way::multiplexed, resource),
            delay);
    if (auto peer = redis_plus_plus_client(support::redlock_nodes(), resource);
        peer && client == "redis-plus-plus")
        return std::make_unique<PatientContender>(std::move(peer), delay);
    throw std::invalid_argument("no client " + client);
}

void contend(Contender& contender, Monotonic::time_point start, std::chrono::milliseconds span) {
    std::size_t acquisitions = 0;
    Monotonic::duration longest{};
    std::this_thread::sleep_until(start);
    const auto end = start + span;
    for (auto wanted = Monotonic::now(); wanted < end; wanted = Monotonic::now()) {
        const bool acquired = contender.acquire_until(end);
        longest = std::max(longest, Monotonic::now() - wanted);  // in vain, too
        if (!acquired) break;
        ++acquisitions;
        std::this_thread::sleep_for(1ms);
        contender.release();
    }
    std::cout << acquisitions << " acquisitions, longest wait "
              << std::chrono::duration<double, std::milli>(longest).count() << " ms\n";
}

}  // namespace
}  // namespace redlock::bench

int main(int argc, char** argv) {
    using namespace redlock::bench;
    try {
        if (argc != 5) throw std::invalid_argument("usage: see the head of contender.cpp");
        ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // 1 ms is to be 1 ms
        const auto who = contender(argv[1], std::chrono::milliseconds{std::stol(argv[2])});
        const Monotonic::time_point start{std::chrono::nanoseconds{std::stoll(argv[3])}};
        contend(*who, start, std::chrono::milliseconds{std::stol(argv[4])});
    } catch (const std::exception& error) {
        std::cerr << "redlock_bench_contender: " << error.what() << '\n';
        return 1;
    }
}
