// One process that acquires, holds and releases locks again and again, and logs what it holds:
//
//     torture_worker LOG INDEX plain|fenced|several|watched|fair|shared QUARANTINE TTL NODE_TIMEOUT NODE...
//
// worker_pool.hpp starts it.
#include <redlock/redlock.hpp>

#include "hold_log.hpp"
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

struct Arguments {
    std::string log;
    std::size_t index;
    Mode mode;
    std::chrono::milliseconds quarantine;
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds node_timeout;
    std::vector<std::string> nodes;
};

class Worker {
public:
    explicit Worker(const Arguments& arguments)
        : arguments_(arguments),
          log_(arguments.log),
          own_log_(log_.of(arguments.index)),
          nodes_(arguments.nodes, {.node_timeout = arguments.node_timeout,
                                   .round = below(2) == 0 ? Round::sequential : Round::all_at_once,
                                   .quarantine = arguments.quarantine}) {
        own_log_.set_mode(arguments.mode);
        if (arguments.mode == Mode::watched || (arguments.mode == Mode::fenced && arguments.index % 2 == 0))
            watchdog_.emplace();
    }

    void run() {
        while (!log_.stopped() && !own_log_.full()) acquire_and_hold();
    }

private:
    LockOptions options() {
        LockOptions options{.ttl = arguments_.ttl,
                            .retry = {.delay = 20ms},
                            .fencing = arguments_.mode == Mode::fenced,
                            .fair = is_fair(),
                            .shared = arguments_.mode == Mode::shared};
        if (watchdog_) {
            options.watchdog = &*watchdog_;
            options.on_lost = [this](const Result&) { own_log_.notified(now()); };
        }
        return options;
    }

    /// Also half of those in other modes, for what they add to the commands of waiters and releases.
    bool is_fair() const {
        const bool second_half = arguments_.index >= HoldLog::workers / 2;
        const bool may_be = arguments_.mode != Mode::plain && arguments_.mode != Mode::shared;
        return arguments_.mode == Mode::fair || (may_be && second_half);
    }

    void acquire_and_hold() {
        const auto resources = choose(arguments_.mode, randomness_);
        Lock lock{nodes_, names_of(resources), options()};
        own_log_.count_attempt();
        if (!lock.acquire_for(500ms)) return;
        // In this order: an instant before remaining() was asked makes the validity no longer than it is.
        const auto acquired = now();
        const auto remaining = lock.remaining();
        if (remaining == 0ns) return;
        own_log_.begin({.from = acquired,
                        .valid_until = acquired + remaining.count(),
                        .resources = resources,
                        .fencing_token = lock.fencing_token()});
        hold(lock);
        own_log_.released(now());
        (void)lock.release();
    }

    /// Mostly short; at times with extensions, at times until after the lock has lapsed.
    void hold(Lock& lock) {
        if (log_.hurried()) return work(lock, 1ms * below(5));
        const auto choice = below(16);
        if (watchdog_) return work(lock, choice < 4 ? 3 * arguments_.ttl : 10ms * choice);
        if (choice < 3) return work(lock, 2 * arguments_.ttl);
        work(lock, 1ms * below(5));
        for (auto extensions = 0U; choice > 12 && extensions < choice - 12; ++extensions) {
            (void)lock.extend();
            work(lock, arguments_.ttl / 4);
        }
    }

    void work(const Lock& lock, std::chrono::nanoseconds span) {
        const auto end = now() + span.count();
        for (auto at = now(); at < end; at = now()) {
            const auto remaining = lock.remaining();
            if (remaining == 0ns) return;
            own_log_.set_valid_until(at + remaining.count());
            std::this_thread::sleep_for(1ms);  // this is the work
        }
    }

    unsigned below(unsigned count) {
        return std::uniform_int_distribution<unsigned>{0, count - 1}(randomness_);
    }

    const Arguments& arguments_;
    HoldLog log_;
    WorkerLog& own_log_;
    std::mt19937 randomness_{std::random_device{}()};
    RedisNodes nodes_;
    std::optional<Watchdog> watchdog_{};
};

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    try {
        const Arguments arguments{.log = words.at(0),
                                  .index = std::stoul(words.at(1)),
                                  .mode = mode_of(words.at(2)),
                                  .quarantine = std::chrono::milliseconds{std::stol(words.at(3))},
                                  .ttl = std::chrono::milliseconds{std::stol(words.at(4))},
                                  .node_timeout = std::chrono::milliseconds{std::stol(words.at(5))},
                                  .nodes = {words.begin() + 6, words.end()}};
        Worker{arguments}.run();
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        std::cerr << "torture_worker: " << error.what() << '\n';
        return EXIT_FAILURE;
    }
}
