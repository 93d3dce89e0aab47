// One of many processes that want one resource. It waits for the resource, holds it, releases it, and wants
// it again.
//
//     redlock_bench_contender CLIENT RETRY-DELAY-MS HOLD-MS START-NS MILLISECONDS
//     1760000012345 1760000098765 1
//
// It prints one line for each acquisition: when it began to wait, when the wait was over, and whether it got
// the lock. The last line is "commands" and the number of commands it has sent, or -1 if unknown. START-NS
// and the times are instants of CLOCK_MONOTONIC, which all processes share. REDLOCK_NODES names the nodes.
#include "raw_client.hpp"
#include "redis_plus_plus_client.hpp"

#include "support/redlock_nodes.hpp"

#include <sys/prctl.h>
#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
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
    virtual long commands() const { return -1; }
};

/// Counts the commands sent. The servers cannot do that, because their counters include the commands that
/// scripts call.
class Commands final : public Observer {
public:
    void round_ended(const Command&, const Tally& tally, std::chrono::nanoseconds) noexcept override {
        for (const auto& node : tally.reports()) sent += node.sent ? 1 : 0;
    }
    long sent = 0;
};

class OurContender final : public Contender {
public:
    OurContender(Round round, const LockOptions& options, bool lock_for_each = false)
        : nodes_(support::redlock_nodes(), {.round = round, .observer = &commands_}),
          options_(options),
          lock_for_each_(lock_for_each) {
        lock_.emplace(nodes_, resource, options_);
    }
    bool acquire_until(Monotonic::time_point end) override {
        if (lock_for_each_) lock_.emplace(nodes_, resource, options_);
        return static_cast<bool>(lock_->acquire_until(end));
    }
    void release() override {
        if (lock_for_each_)
            lock_.reset();
        else
            (void)lock_->release();
    }

    long commands() const override { return commands_.sent; }

private:
    Commands commands_{};
    RedisNodes nodes_;
    LockOptions options_;
    bool lock_for_each_;
    std::optional<Lock> lock_{};
};

/// For a client that can only try once: tries repeatedly, with the pauses that our lock makes.
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
    const LockOptions plain{.retry = {.delay = delay}};
    const LockOptions fair{.retry = {.delay = delay}, .fair = true};
    if (client == "redlock sequential") return std::make_unique<OurContender>(Round::sequential, plain);
    if (client == "redlock all-at-once") return std::make_unique<OurContender>(Round::all_at_once, plain);
    if (client == "redlock fair") return std::make_unique<OurContender>(Round::all_at_once, fair);
    if (client == "redlock fair, a Lock each")
        return std::make_unique<OurContender>(Round::all_at_once, fair, true);
    if (client == "raw multiplexed")
        return std::make_unique<PatientContender>(
            std::make_unique<RawClient>(support::redlock_nodes(), RawClient::Way::multiplexed, resource),
            delay);
    if (auto peer = redis_plus_plus_client(support::redlock_nodes(), resource);
        peer && client == "redis-plus-plus")
        return std::make_unique<PatientContender>(std::move(peer), delay);
    throw std::invalid_argument("no client " + client);
}

void contend(Contender& contender, std::chrono::milliseconds hold, Monotonic::time_point start,
             std::chrono::milliseconds span) {
    struct Wait {
        Monotonic::time_point wanted;
        Monotonic::time_point over;
        bool had;
    };
    std::vector<Wait> waits;
    waits.reserve(100'000);
    std::this_thread::sleep_until(start);
    const auto end = start + span;
    for (auto wanted = Monotonic::now(); wanted < end; wanted = Monotonic::now()) {
        const bool acquired = contender.acquire_until(end);
        waits.push_back({wanted, Monotonic::now(), acquired});
        if (!acquired) break;
        std::this_thread::sleep_for(hold);
        contender.release();
    }
    for (const auto& [wanted, over, had] : waits)
        std::cout << wanted.time_since_epoch() / 1ns << ' ' << over.time_since_epoch() / 1ns << ' ' << had
                  << '\n';
    std::cout << "commands " << contender.commands() << '\n';
}

}  // namespace
}  // namespace redlock::bench

int main(int argc, char** argv) {
    using namespace redlock::bench;
    try {
        if (argc != 6) throw std::invalid_argument("usage: see the head of contender.cpp");
        ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // so that 1 ms takes 1 ms
        const auto who = contender(argv[1], std::chrono::milliseconds{std::stol(argv[2])});
        const Monotonic::time_point start{std::chrono::nanoseconds{std::stoll(argv[4])}};
        contend(*who, std::chrono::milliseconds{std::stol(argv[3])}, start,
                std::chrono::milliseconds{std::stol(argv[5])});
    } catch (const std::exception& error) {
        std::cerr << "redlock_bench_contender: " << error.what() << '\n';
        return 1;
    }
}
