// One process that acquires, holds and lets go of a lock again and again, and keeps a diary of it:
//
//     worker BOARD INDEX sequential|all_at_once TTL RETRY_DELAY HOLDS overstays|leaves NODE...
//
// What team.hpp starts.
#include <redlock/redlock.hpp>

#include "board.hpp"

#include "support/wait_until.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace redlock;
using namespace std::chrono_literals;
using exclusion::monotonic_now;

struct Orders {
    std::string board;
    std::size_t index;
    Round round;
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds retry_delay;
    int holds;
    bool overstays;
    std::vector<std::string> nodes;
};

class Worker {
public:
    explicit Worker(const Orders& orders)
        : orders_(orders),
          board_(orders.board),
          diary_(board_.diary(orders.index)),
          nodes_(orders.nodes, {.round = orders.round}),
          lock_(nodes_, "exclusion", {.ttl = orders.ttl, .retry = {.delay = orders.retry_delay}}) {}

    void run() {
        board_.report_ready();
        (void)support::wait_until([this] { return board_.started() || board_.stopped(); }, 60s);
        wanted_since_ = monotonic_now();
        while (!satisfied()) attempt();
    }

private:
    bool satisfied() {
        return board_.stopped() || diary_.full() || (orders_.holds > 0 && diary_.holds() >= orders_.holds);
    }

    void attempt() {
        const auto result = lock_.acquire_for(300ms);
        diary_.count_attempt();
        const auto now = monotonic_now();
        if (!result || !lock_.valid()) return;
        diary_.begin_hold(now);
        diary_.waited(now - wanted_since_);
        hold();
        wanted_since_ = monotonic_now();
    }

    void hold() {
        const auto mood = orders_.overstays ? random_(randomness_) % 32 : 0U;
        if (mood == 1) return work_for(2 * orders_.ttl);  // lapses, and leaves the keys to their expiry
        work_for(std::chrono::microseconds{random_(randomness_) % 3000});
        for (auto extensions = 0U; mood > 28 && extensions < mood - 28; ++extensions) {
            (void)lock_.extend();
            work_for(orders_.ttl / 8);
        }
        (void)lock_.release();
    }

    /// The last instant noted is one at which the lock was still seen to be valid afterwards.
    void work_for(std::chrono::nanoseconds span) {
        const auto end = monotonic_now() + span.count();
        for (;;) {
            const auto now = monotonic_now();
            if (!lock_.valid()) return;
            diary_.still_held(now);
            if (now >= end) return;
            std::this_thread::sleep_for(200us);  // this is the work
        }
    }

    const Orders& orders_;
    exclusion::Board board_;
    exclusion::Diary& diary_;
    RedisNodes nodes_;
    Lock lock_;
    std::int64_t wanted_since_ = 0;
    std::mt19937 randomness_{std::random_device{}()};
    std::uniform_int_distribution<unsigned> random_{};
};

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    try {
        const Orders orders{.board = words.at(0),
                            .index = std::stoul(words.at(1)),
                            .round = words.at(2) == "sequential" ? Round::sequential : Round::all_at_once,
                            .ttl = std::chrono::milliseconds{std::stol(words.at(3))},
                            .retry_delay = std::chrono::milliseconds{std::stol(words.at(4))},
                            .holds = std::stoi(words.at(5)),
                            .overstays = words.at(6) == "overstays",
                            .nodes = {words.begin() + 7, words.end()}};
        Worker{orders}.run();
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        std::cerr << "worker: " << error.what() << '\n';
        return EXIT_FAILURE;
    }
}
