// One process that repeatedly acquires, holds and releases locks, and logs its holds:
//
//     torture_worker LOG INDEX MODE QUARANTINE TTL NODE_TIMEOUT NODE...
//
// worker_pool.hpp starts it. Some processes have further threads, and a thread with an event loop, on the
// same nodes (HoldLog::has_companions()).
#include <redlock/redlock.hpp>

#include "hold_log.hpp"
#include "loop_worker.hpp"
#include "resources.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
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
    /// `index` is that of the worker, which may be a further thread of the process.
    Worker(const Arguments& arguments, std::size_t index, RedisNodes& nodes)
        : arguments_(arguments), log_(arguments.log), own_log_(log_.of(index)), nodes_(nodes) {
        own_log_.set_mode(arguments.mode);
        // The first workers of these modes extend by themselves.
        const bool may_be_watched = arguments.mode == Mode::fenced || arguments.mode == Mode::semaphore;
        if (arguments.mode == Mode::watched || (may_be_watched && arguments.index >= modes.size()))
            watchdog_.emplace();
        if (arguments.mode == Mode::leader)
            leader_.emplace(nodes_, names_of(leader_resource).front(),
                            LeaderOptions{.ttl = arguments.ttl,
                                          .margin = 3 * arguments.ttl / 8,
                                          .retry = {.attempts = 3, .delay = 20ms},
                                          .fair = is_fair()});
    }

    void run() {
        while (!log_.stopped() && !own_log_.full()) acquire_and_hold();
    }

private:
    LockOptions options() {
        LockOptions options{.ttl = arguments_.ttl,
                            .retry = {.delay = 20ms},
                            .fencing = arguments_.mode == Mode::fenced && !nodes_.has_cluster(),
                            .fair = is_fair(),
                            .shared = arguments_.mode == Mode::shared};
        if (watchdog_) {
            options.watchdog = &*watchdog_;
            options.on_lost = [this](const Result&) { own_log_.notified(now()); };
        }
        return options;
    }

    /// Half of the workers in some other modes are fair as well, because that changes the commands of waiters
    /// and releases.
    bool is_fair() const {
        const bool second_half = arguments_.index >= HoldLog::processes / 2;
        const bool may_be = arguments_.mode != Mode::plain && arguments_.mode != Mode::shared &&
                            arguments_.mode != Mode::semaphore;
        return !nodes_.has_cluster() && (arguments_.mode == Mode::fair || (may_be && second_half));
    }

    void acquire_and_hold() {
        own_log_.count_attempt();
        if (leader_) {
            (void)leader_->run_once([this](const Term& term) { lead(term); });
            return;
        }
        const auto resources = choose(arguments_.mode, randomness_);
        if (arguments_.mode == Mode::semaphore) {
            Semaphore semaphore{nodes_, names_of(resources).front(), semaphore_limit, options()};
            return acquire_and_hold(semaphore, resources);
        }
        Lock lock{nodes_, names_of(resources), options()};
        acquire_and_hold(lock, resources);
    }

    template <class LockOrSemaphore>
    void acquire_and_hold(LockOrSemaphore& lock, std::uint64_t resources) {
        if (!lock.acquire_for(500ms)) return;
        if constexpr (std::is_same_v<LockOrSemaphore, Semaphore>) resources |= slot_resource(lock.slot());
        // The order matters: because `acquired` is read before remaining(), the logged validity is not too
        // long.
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

    /// Holds mostly for a short time, sometimes with extensions, and sometimes until the lock has lapsed.
    void hold(auto& lock) {
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

    void work(const auto& lock, std::chrono::nanoseconds span) {
        const auto end = now() + span.count();
        for (auto at = now(); at < end; at = now()) {
            const auto remaining = lock.remaining();
            if (remaining == 0ns) return;
            own_log_.set_valid_until(at + remaining.count());
            std::this_thread::sleep_for(1ms);  // stands for work
        }
    }

    /// Leads until stop is requested at the latest, and sometimes until the end of the term in spite of that.
    void lead(const Term& term) {
        const auto elected = now();
        own_log_.begin({.from = elected,
                        .valid_until = elected + term.remaining().count(),
                        .resources = leader_resource,
                        .fencing_token = term.fencing_token()});
        bool over = false;
        const auto log_loss = [&] {
            const auto told = now();
            const auto remaining = term.remaining();
            over = remaining == 0ns;
            if (over) own_log_.released(told);
            if (!over) own_log_.set_valid_until(told + remaining.count());
            own_log_.notified(told);
        };
        {
            const std::stop_callback on_lost{term.lost(), log_loss};
            const auto choice = below(16);
            const std::chrono::nanoseconds span = choice < 4 ? 3 * arguments_.ttl : 10ms * choice;
            const auto end = now() + span.count();
            while (now() < end) {
                const bool told = term.lost().stop_requested();
                if (told && (choice > 0 || term.remaining() == 0ns)) break;
                work(term, 1ms);
                std::this_thread::sleep_for(100us);  // the term is over, although stop was not requested
            }
        }
        if (!over) own_log_.released(now());
    }

    unsigned below(unsigned count) {
        return std::uniform_int_distribution<unsigned>{0, count - 1}(randomness_);
    }

    const Arguments& arguments_;
    HoldLog log_;
    WorkerLog& own_log_;
    std::mt19937 randomness_{std::random_device{}()};
    RedisNodes& nodes_;
    std::optional<Watchdog> watchdog_{};
    std::optional<Leader> leader_{};
};

/// Logs when this process gets no processor, until a stop is requested.
void log_suspensions(HoldLog& log, std::size_t process, const std::stop_token& stop) {
    constexpr auto pause = 10ms;
    constexpr auto short_delay = 50ms;
    while (!stop.stop_requested()) {
        const auto due = now() + std::chrono::nanoseconds{pause}.count();
        std::this_thread::sleep_for(pause);
        if (const auto woken = now(); woken - due > std::chrono::nanoseconds{short_delay}.count())
            log.suspensions_of(process).add(due, woken);
    }
}

/// Runs all workers of this process.
void run(const Arguments& arguments) {
    const auto round = std::random_device{}() % 2 == 0 ? Round::sequential : Round::all_at_once;
    RedisNodes nodes{
        arguments.nodes,
        {.node_timeout = arguments.node_timeout, .round = round, .quarantine = arguments.quarantine}};
    HoldLog log{arguments.log};
    const std::jthread watcher{
        [&](const std::stop_token& stop) { log_suspensions(log, arguments.index, stop); }};
    std::vector<std::jthread> threads;
    const auto begin = [&](auto function) {
        threads.emplace_back([function] {
            try {
                function();
            } catch (const std::exception& error) {
                std::cerr << "torture_worker: " << error.what() << '\n';
                std::_Exit(EXIT_FAILURE);
            }
        });
    };
    if (HoldLog::has_companions(arguments.index)) {
        for (std::size_t i = 0; i < HoldLog::further_threads; ++i)
            begin([&, i] { Worker{arguments, HoldLog::companion(arguments.index, i), nodes}.run(); });
        begin([&] {
            LoopWorker{arguments.log, HoldLog::companion(arguments.index, HoldLog::further_threads), nodes,
                       arguments.ttl}
                .run();
        });
    }
    Worker{arguments, arguments.index, nodes}.run();
}

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
        run(arguments);
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        std::cerr << "torture_worker: " << error.what() << '\n';
        return EXIT_FAILURE;
    }
}
