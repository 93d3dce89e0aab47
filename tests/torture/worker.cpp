// One process that acquires, holds and lets go of locks again and again, and keeps the ledger of it:
//
//     torture_worker LEDGER INDEX plain|fenced|several|watched QUARANTINE TTL NODE...
//
// What crew.hpp starts.
#include <redlock/redlock.hpp>

#include "ledger.hpp"
#include "resources.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace redlock;
using namespace redlock::torture;
using namespace std::chrono_literals;

struct Orders {
    std::string ledger;
    std::size_t index;
    Mode mode;
    std::chrono::milliseconds quarantine;
    std::chrono::milliseconds ttl;
    std::vector<std::string> nodes;
};

class Worker {
public:
    explicit Worker(const Orders& orders)
        : orders_(orders),
          ledger_(orders.ledger),
          pages_(ledger_.pages(orders.index)),
          nodes_(orders.nodes, {.node_timeout = 50ms,
                                .round = below(2) == 0 ? Round::sequential : Round::all_at_once,
                                .quarantine = orders.quarantine}) {
        pages_.set_mode(orders.mode);
        if (orders.mode == Mode::watched || (orders.mode == Mode::fenced && orders.index % 2 == 0))
            watchdog_.emplace();
    }

    void run() {
        while (!ledger_.stopped() && !pages_.full()) turn();
    }

private:
    LockOptions options() {
        LockOptions options{
            .ttl = orders_.ttl, .retry = {.delay = 20ms}, .fencing = orders_.mode == Mode::fenced};
        if (watchdog_) {
            options.watchdog = &*watchdog_;
            options.on_lost = [this](const Result&) { pages_.tell(now()); };
        }
        return options;
    }

    void turn() {
        const auto resources = choose(orders_.mode, randomness_);
        Lock lock{nodes_, names_of(resources), options()};
        pages_.attempt();
        if (!lock.acquire_for(500ms)) return;
        // The order counts: an instant before remaining() was asked makes no promise too long.
        const auto acquired = now();
        const auto remaining = lock.remaining();
        if (remaining == 0ns) return;
        pages_.begin({.from = acquired,
                      .promised_until = acquired + remaining.count(),
                      .resources = resources,
                      .fencing_token = lock.fencing_token()});
        hold(lock);
        pages_.release(now());
        (void)lock.release();
    }

    /// Mostly short; at times with extensions, at times until after the lock has lapsed.
    void hold(Lock& lock) {
        const auto mood = below(16);
        if (watchdog_) return work(lock, mood < 4 ? 3 * orders_.ttl : 10ms * mood);
        if (mood < 3) return work(lock, 2 * orders_.ttl);
        work(lock, 1ms * below(5));
        for (auto extensions = 0U; mood > 12 && extensions < mood - 12; ++extensions) {
            (void)lock.extend();
            work(lock, orders_.ttl / 4);
        }
    }

    void work(const Lock& lock, std::chrono::nanoseconds span) {
        const auto end = now() + span.count();
        for (auto at = now(); at < end; at = now()) {
            const auto remaining = lock.remaining();
            if (remaining == 0ns) return;
            pages_.promise(at + remaining.count());
            std::this_thread::sleep_for(1ms);  // this is the work
        }
    }

    unsigned below(unsigned count) {
        return std::uniform_int_distribution<unsigned>{0, count - 1}(randomness_);
    }

    const Orders& orders_;
    Ledger ledger_;
    Pages& pages_;
    std::mt19937 randomness_{std::random_device{}()};
    RedisNodes nodes_;
    std::optional<Watchdog> watchdog_{};
};

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    try {
        const Orders orders{.ledger = words.at(0),
                            .index = std::stoul(words.at(1)),
                            .mode = mode_of(words.at(2)),
                            .quarantine = std::chrono::milliseconds{std::stol(words.at(3))},
                            .ttl = std::chrono::milliseconds{std::stol(words.at(4))},
                            .nodes = {words.begin() + 5, words.end()}};
        Worker{orders}.run();
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        std::cerr << "torture_worker: " << error.what() << '\n';
        return EXIT_FAILURE;
    }
}
